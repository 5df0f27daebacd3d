"""Use cases of people and teams, one verb a file. Commands and pages call the same ones."""
