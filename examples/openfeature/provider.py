"""OpenFeature with outcomes: the official OFREP provider, and `track`, which tells what came of a visit."""

from urllib.parse import quote

from openfeature.contrib.provider.ofrep import OFREPProvider
from openfeature.evaluation_context import EvaluationContext
from openfeature.track import TrackingEventDetails


class LexbanditsProvider(OFREPProvider):
    """Evaluates studies as flags, and tells them values of their objectives.

    `client.track("converted", context, TrackingEventDetails(1.0, {"study": "landing"}))` tells the trial of
    the context's targeting key that the objective "converted" of the study "landing" has the value 1.
    """

    def __init__(self, address: str, token: str, timeout: float = 5.0) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        super().__init__(address, headers_factory=lambda: headers, timeout=timeout)
        self.session.headers.update(headers)

    def track(
        self,
        tracking_event_name: str,
        evaluation_context: EvaluationContext | None = None,
        tracking_event_details: TrackingEventDetails | None = None,
    ) -> None:
        """Tell one value of an open trial. Who is not measured, or was told in full, is left alone."""
        details = tracking_event_details or TrackingEventDetails()
        study = str((details.attributes or {})["study"])
        # the same visitor gets the same trial, as long as it is open
        trial = self.resolve_string_details(study, "", evaluation_context).flag_metadata.get("trial")
        if trial is None:
            return
        value = 1.0 if details.value is None else details.value
        answer = self.session.put(
            f"{self.base_url.rstrip('/')}/api/studies/{quote(study, safe='')}/trials/{trial}/result",
            json={"values": {tracking_event_name: value}, "partial": True},
            timeout=self.timeout,
        )
        answer.raise_for_status()
