"""The evaluation set: rows as cells that are counted, checked, merged and stored."""
