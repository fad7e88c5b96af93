"""A picture of ratios as SVG: for each workload a group of bars, one for each system, against the fastest peer."""
from xml.sax.saxutils import escape

WIDTH, LEFT, RIGHT = 1000, 232, 96
BAR, BAR_GAP, GROUP_GAP = 12, 3, 16
HEAD, PANEL_HEAD, FOOT = 116, 72, 36
FONT = "Inter, 'Helvetica Neue', Arial, sans-serif"
INK, SOFT, LINE, PAPER = "#1b2430", "#66717f", "#dde2e8", "#ffffff"
# Ours in blues, the peers in greys and earth tones: (system, number within the system).
COLOURS = {("cavs", 0): "#9cc3ea", ("cavs", 1): "#2f7fd0", ("cavs", 2): "#123f78", ("dynet", 0): "#b7a27c",
           ("pytorch", 0): "#d98b6a", ("pytorch", 1): "#a4513a", ("dgl", 0): "#9aa5b1"}


def text(x, y, words, size=12, colour=INK, anchor="start", weight=400):
    """With a rim of the paper's colour, so that lines behind it do not cross it."""
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{colour}" text-anchor="{anchor}" '
            f'font-weight="{weight}" stroke="{PAPER}" stroke-width="3" paint-order="stroke">{escape(words)}</text>')


def rectangle(x, y, width, height, colour, radius=0):
    return (f'<rect x="{x:.1f}" y="{y:.1f}" width="{max(width, 0.5):.1f}" height="{height:.1f}" rx="{radius}" '
            f'fill="{colour}"/>')


def line(x, top, bottom, colour, width=1, dash=""):
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return (f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="{colour}" '
            f'stroke-width="{width}"{dashes}/>')


def colours_of(panels):
    """By label, in the order of first appearance."""
    colours, counts = {}, {}
    for _, groups in panels:
        for _, bars in groups:
            for label, system, _, _ in bars:
                if label not in colours:
                    counts[system] = counts.get(system, -1) + 1
                    colours[label] = COLOURS.get((system, counts[system]), SOFT)
    return colours


def steps(highest):
    """Round numbers for the axis, about six of them."""
    step = next(step for step in (0.25, 0.5, 1, 2, 5, 10, 20, 50, 100, 1e9) if highest / step <= 7)
    return [step * k for k in range(int(highest / step) + 1)]


def panel_height(groups):
    return PANEL_HEAD + sum(len(bars) * (BAR + BAR_GAP) + GROUP_GAP for _, bars in groups)


def draw_panel(title, groups, colours, top):
    highest = max(value for _, bars in groups for _, _, value, _ in bars if value is not None) * 1.02
    scale = (WIDTH - LEFT - RIGHT) / highest
    axis, bottom = top + PANEL_HEAD - 22, top + panel_height(groups) - GROUP_GAP / 2
    parts = [text(24, top + 20, title, 16, weight=600)]
    for value in steps(highest):
        x = LEFT + value * scale
        parts += [line(x, axis, bottom, LINE), text(x, axis - 6, f"{value:g}×", 11, SOFT, "middle")]
    parts.append(line(LEFT + scale, axis, bottom, INK, 1.2, "3 3"))
    y = top + PANEL_HEAD - GROUP_GAP / 2
    for workload, bars in groups:
        middle = y + len(bars) * (BAR + BAR_GAP) / 2
        parts.append(text(LEFT - 14, middle + 3, workload, 12, anchor="end", weight=500))
        for label, _, value, figure in bars:
            parts += draw_bar(y, (value or 0) * scale, colours[label],
                              figure if value is None else f"{value:.2f}× · {figure}")
            y += BAR + BAR_GAP
        y += GROUP_GAP
    return parts


def draw_bar(y, width, colour, words):
    return [rectangle(LEFT, y, width, BAR, colour, 2), text(LEFT + width + 6, y + BAR - 2, words, 10.5, SOFT)]


def draw_legend(colours, y):
    parts, x = [], 24
    for label, colour in colours.items():
        width = 26 + 6.4 * len(label)
        if x + width > WIDTH - 24:
            x, y = 24, y + 20
        parts += [rectangle(x, y - 10, 12, 12, colour, 2), text(x + 18, y, label, 12)]
        x += width + 12
    return parts


def draw(panels, subtitle):
    """`panels`: (title, [(workload, [(label, system, ratio, figure)])]); no ratio where the system did not run."""
    panels = [(title, groups) for title, groups in panels if groups]
    colours = colours_of(panels)
    height = HEAD + sum(panel_height(groups) + 12 for _, groups in panels) + FOOT
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
             f'height="{height}" font-family="{FONT}">', rectangle(0, 0, WIDTH, height, PAPER),
             text(24, 36, "Speed over the fastest peer in f32", 21, weight=700), text(24, 57, subtitle, 12, SOFT)]
    parts += draw_legend(colours, 82)
    top = HEAD
    for title, groups in panels:
        parts += draw_panel(title, groups, colours, top)
        top += panel_height(groups) + 12
    parts.append(text(24, height - 14, "The dashed line is the fastest peer in f32. Medians over interleaved rounds; "
                                       "longer is faster.", 11, SOFT))
    return "\n".join(parts) + "\n</svg>\n"
