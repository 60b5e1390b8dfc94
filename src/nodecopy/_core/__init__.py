"""Private helpers of all packages."""
