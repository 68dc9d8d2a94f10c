"""What `make docs` needs beside Sphinx."""
