"""The folder to put on PYTHONPATH: its only content is the package `ttexalens`."""
