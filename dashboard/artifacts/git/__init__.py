"""TVM built from source: any remote, branch, tag, commit or pull request."""
