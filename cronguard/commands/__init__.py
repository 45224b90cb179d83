"""One use case a module: takes a request, returns a frozen result, never prints."""
