/** SVG diagrams of graphs. */

export type { Mark } from "./paint.ts";
export { type PictureStyleOptions, pictureStyle } from "./style.ts";
export { drawOutline, getPictureSize, type SvgOptions, toSvg } from "./to-svg.ts";
