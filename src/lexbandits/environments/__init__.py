"""What is true: instances and their noise."""
