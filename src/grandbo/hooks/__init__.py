"""Ways in: webhooks of the tools that people use, and the documents that they write."""
