/** The colours of a picture, on light and on dark. */

/** Fill and line of each kind of part. */
interface Colours {
  readonly canvas: string;
  readonly text: string;
  readonly soft: string;
  readonly line: string;
  readonly region: readonly [string, string];
  readonly border: string;
  readonly body: readonly [string, string];
  readonly task: readonly [string, string];
  readonly tools: readonly [string, string];
  readonly state: readonly [string, string];
  readonly good: string;
  readonly bad: string;
  readonly current: string;
}

const light: Colours = {
  canvas: "#ffffff",
  text: "#1c2530",
  soft: "#526071",
  line: "#6b7a8c",
  region: ["#f6f8fa", "#eceff3"],
  border: "#b4bfcb",
  body: ["#eaf1fe", "#4a7bd0"],
  task: ["#e6f7ee", "#2c9464"],
  tools: ["#fef3df", "#c07f16"],
  state: ["#f1edfd", "#7a66cf"],
  good: "#178a43",
  bad: "#d3261c",
  current: "#a21caf",
};

const dark: Colours = {
  canvas: "#0d1117",
  text: "#e8edf3",
  soft: "#a3b0bf",
  line: "#8593a3",
  region: ["#151b23", "#1d2530"],
  border: "#465361",
  body: ["#15243f", "#6c9bf0"],
  task: ["#10291f", "#46bb85"],
  tools: ["#2f2510", "#dea447"],
  state: ["#231d3d", "#a594f2"],
  good: "#3fc974",
  bad: "#ff6b61",
  current: "#e879f9",
};

/** The style sheet of a picture. Everything in it is below the class of the picture: a page that it stands in stays as it is. */
export const style: string = [
  rule(
    "text",
    'font-family:ui-monospace,"SF Mono",Menlo,Consolas,"DejaVu Sans Mono",monospace;font-size:13px;text-anchor:middle',
  ),
  rule(".title", "text-anchor:start;font-weight:600"),
  rule(".label text,.note", "font-size:11px"),
  rule(".shape", "stroke-width:1.5"),
  rule(".deferred>.shape", "stroke-dasharray:5 3"),
  rule(".line", "fill:none;stroke-width:1.5"),
  rule(".route .line,.otherwise .line", "stroke-dasharray:6 4"),
  rule(".goto .line", "stroke-dasharray:2 4;stroke-linecap:round"),
  rule(".each .line", "stroke-width:2.5"),
  rule(".good>.shape,.good .line,.bad>.shape,.bad .line,.current>.shape,.current .line", "stroke-width:3"),
  ...painted(light),
  `@media (prefers-color-scheme:dark){${painted(dark).join("")}}`,
].join("");

function rule(selectors: string, declarations: string): string {
  const below = selectors.split(",").map((selector) => `.statewright ${selector}`);
  return `${below.join(",")}{${declarations}}`;
}

function painted(colours: Colours): readonly string[] {
  const kinds = (["body", "task", "tools", "state"] as const).flatMap((kind) => {
    const [fill, stroke] = colours[kind];
    return [rule(`.${kind}>.shape`, `fill:${fill};stroke:${stroke}`)];
  });
  const marks = (["good", "bad", "current"] as const).flatMap((mark) => [
    rule(`.${mark}>.shape,.${mark} .line`, `stroke:${colours[mark]}`),
    rule(`.${mark} .tip`, `fill:${colours[mark]};stroke:${colours[mark]}`),
    rule(`.${mark} text`, `fill:${colours[mark]}`),
  ]);
  return [
    rule(".canvas,.ground0", `fill:${colours.canvas}`),
    rule(".ground1", `fill:${colours.region[0]}`),
    rule(".ground2", `fill:${colours.region[1]}`),
    rule("text", `fill:${colours.text}`),
    rule(".label text,.note", `fill:${colours.soft}`),
    ...kinds,
    rule(".region>.shape", `stroke:${colours.border}`),
    rule(".region.odd>.shape", `fill:${colours.region[0]}`),
    rule(".region.even>.shape", `fill:${colours.region[1]}`),
    rule(".start>.shape,.end>.dot", `fill:${colours.text};stroke:none`),
    rule(".end>.shape", `fill:none;stroke:${colours.text}`),
    rule(".line", `stroke:${colours.line}`),
    rule(".tip", `fill:${colours.line};stroke:${colours.line}`),
    rule(".join .tip", `fill:${colours.canvas}`),
    rule(".each .line", `stroke:${colours.task[1]}`),
    rule(".each .tip", `fill:${colours.task[1]};stroke:${colours.task[1]}`),
    ...marks,
  ];
}
