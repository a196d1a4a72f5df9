/**
 * Draws the pictures of the docs from the graphs of their programs into `docs/pictures` of the current folder:
 * `node packages/statewright/test/docs/pictures/draw-pictures.ts` at the root of the repository.
 */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toSvg } from "@statewright/pictures";

const folder = join(process.cwd(), "docs/pictures");
mkdirSync(folder, { recursive: true });

// The programs write their stores to the current folder.
const scratch = mkdtempSync(join(tmpdir(), "pictures-"));
process.chdir(scratch);
const { article } = await import("../tour/define.ts");
const { payment } = await import("../tour/a-graph-that-waits.ts");
const { report } = await import("../graphs/subgraphs.ts");
const { order } = await import("../graphs/durable-machines.ts");
const { scrape } = await import("../graphs/node-policies.ts");

for (const graph of [article, payment, report, order, scrape])
  writeFileSync(join(folder, `${graph.name}.svg`), toSvg(graph, { direction: graph === article ? "down" : "right" }));
process.chdir(tmpdir());
rmSync(scratch, { recursive: true, force: true });
