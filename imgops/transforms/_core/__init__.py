"""What the transforms share; nothing here is public."""
