"""What sites send, checked, aligned by name and stacked into rows."""
