/** The example tools pass the tool conformance suite. */
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { virtualClock } from "@statewright/testing";
import { type ToolPack, toolConformance } from "@statewright/testing/conformance";
import { describe, expect, test } from "vitest";
import { analyse } from "../src/analysis.ts";
import { calculator } from "../src/calculator.ts";
import { deployApp } from "../src/deploy.ts";
import { download } from "../src/download.ts";
import { searchFiles } from "../src/file-search.ts";
import { defineSaveRecord, processItems } from "../src/items.ts";
import { fetchPages } from "../src/pages.ts";
import { readText } from "../src/read-text.ts";
import { processRows } from "../src/rows.ts";
import { stats } from "../src/stats.ts";
import { currentWeather, weatherInUnits } from "../src/weather.ts";

/** Tools that need only the clock of the run. */
function createClockPack(): ToolPack {
  const save = async (record: object) => {
    if ("note" in record && record.note === "full") throw new Error("the disk is full");
    return record;
  };
  return {
    tools: [
      ...[analyse, calculator, currentWeather, deployApp, processItems, processRows],
      ...[defineSaveRecord(save), stats, weatherInUnits],
    ],
    samples: {
      analyse: { good: {}, long: {} },
      calculator: { good: { expression: "1 + 2" }, failing: { expression: "1 +" } },
      get_weather: { good: { city: "Paris" } },
      deploy: { good: { env: "testing" }, long: { env: "testing" } },
      process_items: { good: { items: ["one"] }, long: { items: Array.from({ length: 5_000 }, () => "item") } },
      process_rows: { good: { total: 3 }, long: { total: 1_000_000 } },
      save_record: { good: { requiredField: "a" }, failing: { requiredField: "a", note: "full" } },
      stats: { good: { numbers: [1, 2] } },
      weather_in_units: { good: { location: "Oslo" }, failing: { location: "Atlantis" } },
    },
    world: virtualClock(),
    // Text and details say the same on purpose.
    mayRepeat: () => true,
  };
}

/** Tools that read files and a server. The server never completes a response below `/slow`. */
async function createExternalPack(): Promise<ToolPack> {
  const server = createServer((request, response) => {
    if (request.url === "/slow") response.write("the first part");
    else if (request.url === "/none") response.writeHead(404).end();
    else response.end("some text");
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const bound = server.address();
  if (bound === null || typeof bound === "string") throw new Error("the server has no port");
  const at = (path: string) => `http://127.0.0.1:${bound.port}/${path}`;
  const home = mkdtempSync(join(tmpdir(), "statewright-examples-"));
  const folder = join(home, "searched");
  mkdirSync(folder);
  for (let nth = 0; nth < 200; nth++) writeFileSync(join(folder, `${nth}.txt`), "");
  writeFileSync(join(home, "one.txt"), "some text");
  return {
    tools: [download, fetchPages, readText, searchFiles],
    samples: {
      download: { good: { url: at("small") }, failing: { url: at("none") }, long: { url: at("slow") } },
      fetch_pages: { good: { urls: [at("small")] }, long: { urls: [at("slow")] } },
      read_text: { good: { path: join(home, "one.txt") }, failing: { path: join(home, "none.txt") } },
      search_files: { good: { pattern: "1.txt" }, long: { pattern: "*.txt" } },
    },
    context: { folder },
    mayRepeat: () => true,
    dispose: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
      rmSync(home, { recursive: true, force: true });
    },
  };
}

describe.each([
  ["on the clock of its run", createClockPack],
  ["with files and a server", createExternalPack],
] as const)("an example that works %s", (_name, open) => {
  test.each(toolConformance)("an example tool passes: $name", ({ run }) => run(open));

  test("every example tool that can run longer than a second emits an update with details and stops on its signal [S4.32, S4.33, S4.34, S4.38]", async () => {
    const long = toolConformance.filter(({ name }) => name.startsWith("a long-running tool call"));
    expect(long).toHaveLength(1);
    for (const { run } of long) await run(open);
    const { tools, samples, dispose } = await open();
    await dispose?.();
    const quick = "calculator get_weather save_record stats weather_in_units read_text".split(" ");
    const names = tools.map(({ spec }) => spec.name).filter((name) => !quick.includes(name));
    expect(names.filter((name) => samples[name]?.long === undefined)).toEqual([]);
  });
});
