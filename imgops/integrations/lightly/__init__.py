"""lightly's pipelines and views."""

from imgops.integrations.lightly import transforms as transforms
