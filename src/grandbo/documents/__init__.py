"""Documents that people write: post-mortems, runbooks, alerting rules, read into the parts that an entry has."""
