"""The pictures of the pages: what each operator and transform does to a photograph."""

from show._examples import EXAMPLES as EXAMPLES
from show._examples import NOT_PICTURED as NOT_PICTURED
from show._examples import draw as draw
from show._scene import draw_annotated as draw_annotated
from show._scene import fit_photo as fit_photo
from show._scene import picture as picture
from show._scene import sample as sample
