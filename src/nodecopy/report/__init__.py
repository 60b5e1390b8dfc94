"""Things to look at: pictures of graphs and of what was found."""
