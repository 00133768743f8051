"""torchvision's pipelines: of both versions, and what its weights are used with."""

from imgops.integrations.torchvision import transforms as transforms
