/** The text of an exported test. */
import type { RecordedRun } from "./recorded-run.ts";

/** What stands in the file. */
export interface TestFile {
  readonly recorded: RecordedRun;
  /** The name of the recording, beside the test. */
  readonly recording: string;
  readonly from: string;
  readonly contextFrom: string | undefined;
  readonly context: unknown;
  readonly unrecorded: readonly string[];
}

/** A vitest file that plays the recording. */
export function testFile({ recorded, recording, from, contextFrom, context, unrecorded }: TestFile): string {
  const graph = importOf(from);
  const given = contextFrom === undefined ? undefined : importOf(contextFrom);
  const shared = given?.module === graph.module ? [graph.name, given.name].sort().join(", ") : graph.name;
  const imports = [
    `import { ${shared} } from ${JSON.stringify(graph.module)};`,
    ...(given === undefined || given.module === graph.module
      ? []
      : [`import { ${given.name} } from ${JSON.stringify(given.module)};`]),
  ];
  const shown = given?.name ?? (context === undefined ? undefined : JSON.stringify(context));
  const options = shown === undefined ? "" : `, { context: ${shown} }`;
  const title = `the graph ${recorded.graph} goes as it was recorded: ${recorded.path.map((nodes) => nodes.join(" + ")).join(" → ")}`;
  return [
    "// Written by exportTest: export the run again when the graph is meant to behave otherwise.",
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

function importOf(from: string): { readonly module: string; readonly name: string } {
  const [module = "", name = ""] = from.split("#");
  if (module !== "" && /^[A-Za-z_$][\w$]*$/.test(name)) return { module, name };
  throw new TypeError(`"${from}" names no export of a module: write it as "../src/shop.ts#shop"`);
}
