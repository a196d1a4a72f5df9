/** Source text of an exported test. */
import type { RecordedRun } from "./recorded-run.ts";

/** Contents of a test file. */
export interface TestFileOptions {
  readonly recorded: RecordedRun;
  /** File name of the recording next to the test. */
  readonly recording: string;
  readonly from: string;
  readonly contextFrom: string | undefined;
  readonly context: unknown;
  readonly unrecorded: readonly string[];
}

/** Renders a vitest file that replays the recording. */
export function renderTestFile({
  recorded,
  recording,
  from,
  contextFrom,
  context,
  unrecorded,
}: TestFileOptions): string {
  const graph = parseImport(from);
  const contextImport = contextFrom === undefined ? undefined : parseImport(contextFrom);
  const names =
    contextImport?.module === graph.module ? [graph.name, contextImport.name].sort().join(", ") : graph.name;
  const imports = [
    `import { ${names} } from ${JSON.stringify(graph.module)};`,
    ...(contextImport === undefined || contextImport.module === graph.module
      ? []
      : [`import { ${contextImport.name} } from ${JSON.stringify(contextImport.module)};`]),
  ];
  const contextSource = contextImport?.name ?? (context === undefined ? undefined : JSON.stringify(context));
  const options = contextSource === undefined ? "" : `, { context: ${contextSource} }`;
  const path = recorded.path.map((nodes) => nodes.join(" + ")).join(" → ");
  const title = `the graph ${recorded.graph} follows the recorded path${path === "" ? " of its input" : `: ${path}`}`;
  return [
    "// Written by exportTest. Export the run again when the graph changes on purpose.",
    ...(recorded.commits === undefined
      ? []
      : ["// Part of a run: the replay is held after the last recorded superstep."]),
    ...(unrecorded.length === 0 ? [] : ["// Not recorded:", ...unrecorded.map((line) => `// - ${line}`)]),
    'import { readFileSync } from "node:fs";',
    'import { replayRun } from "@statewright/testing";',
    'import { expect, test } from "vitest";',
    ...imports,
    "",
    `const recorded = JSON.parse(readFileSync(new URL(${JSON.stringify(recording)}, import.meta.url), "utf8"));`,
    "",
    `test(${JSON.stringify(title)}, async () => {`,
    `  const run = await replayRun(${graph.name}, recorded${options});`,
    `  expect(run.path).toEqual(${JSON.stringify(recorded.path)});`,
    "  expect(run.state).toEqual(recorded.state);",
    `  expect(run.status).toBe(${JSON.stringify(recorded.status)});`,
    "});",
    "",
  ].join("\n");
}

function parseImport(from: string): { readonly module: string; readonly name: string } {
  const [module = "", name = ""] = from.split("#");
  if (module !== "" && /^[A-Za-z_$][\w$]*$/.test(name)) return { module, name };
  throw new TypeError(
    `exportTest: expected a module and an export name such as "../src/shop.ts#shop", got "${from}". Pass the path and the export name of the graph.`,
  );
}
