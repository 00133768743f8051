"""torchvision's pipelines: of both versions, and those of its weights."""

from imgops.integrations.torchvision import rules as rules
