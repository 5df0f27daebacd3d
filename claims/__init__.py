"""What people ask for and get: the request form and its files, GPU requests as rows, resource claims as pages."""
