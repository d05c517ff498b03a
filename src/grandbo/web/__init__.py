"""The pages: what reviewers, admins and auditors look at. No SQL and no rules; every page has a `.json` twin."""
