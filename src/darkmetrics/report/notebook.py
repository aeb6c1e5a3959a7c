"""A page that shows itself in a notebook."""

import html
from dataclasses import dataclass, field


@dataclass(frozen=True)
class ReportPage:
    """A report that was made without a file: a notebook shows it, and `html` is the page as text.

    Examples
    --------
    >>> import darkmetrics as dm
    >>> page = dm.evaluate([1, 0, None, 1], [0.9, 0.2, 0.7, 0.4], label_model=[0.6]).report(title="Four rows")
    >>> page
    <ReportPage 'Four rows': a notebook shows it, report("report.html") writes it>
    >>> page.html[:15]
    '<!doctype html>'
    """

    title: str
    html: str = field(repr=False)

    def __repr__(self) -> str:
        return f'<ReportPage {self.title!r}: a notebook shows it, report("report.html") writes it>'

    def _repr_html_(self) -> str:
        # In a frame of its own: styles and scripts of the page and of the notebook do not meet.
        page = html.escape(self.html)
        return (
            f'<iframe title="{html.escape(self.title)}" sandbox="allow-scripts allow-downloads" width="100%" '
            f'height="800" srcdoc="{page}"></iframe>'
        )
