"""What the generated pages of docs/ are made with; cog calls it, and tests check it."""
