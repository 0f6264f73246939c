"""What happened in a study, and what it means."""
