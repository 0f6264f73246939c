"""Live studies: named arms and objectives, measured by many workers, on a journal that loses nothing."""
