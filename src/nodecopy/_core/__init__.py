"""What every part of the package builds on; private."""
