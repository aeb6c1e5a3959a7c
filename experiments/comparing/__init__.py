"""Seven models compared with few labels: are the chances to be best right, and do intervals of differences hold?"""
