"""timm's pipelines, policies and Mixup."""

from imgops.integrations.timm import mixup as mixup
from imgops.integrations.timm import policies as policies
from imgops.integrations.timm import transforms as transforms
