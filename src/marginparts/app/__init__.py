"""From people's files to models, and from models to files and pages."""
