import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { createCases } from "../src/cases/all.ts";
import { countPackages } from "../src/cases/installed.ts";
import { loadAgentPeers } from "../src/peers/agents.ts";
import { loadBundler } from "../src/peers/esbuild.ts";
import { type InstallResult, install, type Peer } from "../src/peers/install.ts";
import { loadPeers, noPeers } from "../src/peers/langgraph.ts";
import { loadServerPeers } from "../src/peers/servers.ts";
import { createScratchFolder, type ScratchFolder } from "../src/scratch-files.ts";

const reason = "npm install failed (1): npm error 404 Not Found";
const createMissingResult = async (): Promise<InstallResult> => ({ kind: "missing", reason });

test("a peer that fails to install is reported with the npm output and left out of every case", async () => {
  const agents = await loadAgentPeers(createMissingResult);
  expect(agents).toMatchObject({ inMemory: [], saved: [], installed: [] });
  const peers = await loadPeers(agents, "1.4.18", createMissingResult);
  expect(peers.notices.map((line) => line.replace(`is missing: ${reason}.`, "-"))).toEqual([
    "LangGraph.js 1.4.18 -",
    "pi-agent-core 0.87.1 -",
    "AI SDK 7.0.173 -",
    "AI SDK streamText 7.0.173 -",
    "OpenAI Agents 0.20.0 -",
    "LangChain createAgent 1.5.14 -",
    "LangChain createAgent with SQLite 1.5.14 -",
    "LangGraph.js 1.7.3 -",
    "Mastra 1.71.0 -",
    "Mastra with LibSQL and recovery 1.71.0 -",
  ]);
  expect(await loadBundler(createMissingResult)).toBe(
    `esbuild 0.28.2 is missing, so B11 and the bundle of B22 are skipped: ${reason}.`,
  );
  const roles = createCases(peers).flatMap(({ contenders }) => contenders.map(({ role }) => role));
  expect(roles).not.toContain("peer");
});

test("a failed install leaves no folder that passes for installed", async () => {
  const peer = { name: "none", version: "1.0.0", dependencies: {}, overrides: {}, entry: "" };
  const asked: string[] = [];
  const failing = async (folder: string): Promise<string> => {
    asked.push(folder);
    return reason;
  };
  expect(await install(peer, failing)).toEqual({ kind: "missing", reason });
  expect(await install(peer, failing)).toEqual({ kind: "missing", reason });
  expect(asked).toHaveLength(2);
});

const createInstalledResult = async (): Promise<InstallResult> => ({
  kind: "installed",
  folder: "folder",
  entry: "file:///entry",
});

test("an installed and working peer takes part in the cases of its kind", async () => {
  const agents = await loadAgentPeers(createInstalledResult, async () => undefined);
  expect(agents.inMemory.map(({ name }) => name)).toEqual([
    "pi-agent-core",
    "AI SDK",
    "AI SDK streamText",
    "OpenAI Agents",
    "LangChain createAgent",
    "LangGraph.js 1.7.3",
    "Mastra",
  ]);
  const saved = [
    "pi-agent-core AgentHarness with JSONL",
    "LangChain createAgent with SQLite",
    "LangGraph.js 1.7.3",
    "Mastra with LibSQL and recovery",
  ];
  expect(agents.saved.map(({ name }) => name)).toEqual(saved);
  expect(agents.notices).toContain("LangGraph.js 1.7.3.");
  const cases = createCases({ ...noPeers, agents }).filter(({ id }) => ["B15 short", "B15", "B16"].includes(id));
  expect(
    cases.map(({ contenders }) => contenders.filter(({ role }) => role === "peer").map(({ name }) => name)),
  ).toEqual([saved, saved, saved]);
});

/** Only pi-agent-core installs, and this is its program. */
const installs =
  (scratch: ScratchFolder, program: string) =>
  async ({ name }: Peer): Promise<InstallResult> => {
    if (name !== "pi-agent-core") return { kind: "missing", reason };
    scratch.write("entry.mjs", program);
    return { kind: "installed", folder: scratch.path, entry: pathToFileURL(join(scratch.path, "entry.mjs")).href };
  };

test.each([
  ["talks and saves all", "export const talk = async (turns) => turns + 1; export const saved = async () => 6;", []],
  [
    "does not save all",
    "export const talk = async (turns) => turns + 1; export const saved = async () => 5;",
    ["pi-agent-core AgentHarness with JSONL does not run: Error: expected 6 saved messages, got 5."],
  ],
  [
    "does not start",
    'throw new TypeError("no such export");',
    [
      "pi-agent-core does not run: TypeError: no such export.",
      "pi-agent-core AgentHarness with JSONL does not run: TypeError: no such export.",
    ],
  ],
])("a peer that %s", async (_what, program, notices) => {
  const scratch = createScratchFolder();
  const agents = await loadAgentPeers(installs(scratch, program));
  scratch.remove();
  expect(agents.notices.filter((line) => line.includes("does not run"))).toEqual(notices);
  expect(agents.inMemory.length + agents.saved.length).toBe(2 - notices.length);
});

test("an agent with an AI SDK model is measured beside the loops of the AI SDK with and without streams [FX98]", async () => {
  const agents = await loadAgentPeers(createInstalledResult, async () => undefined);
  const cases = createCases({ ...noPeers, agents }).filter(({ id }) => id.startsWith("B14 sdk"));
  expect(cases.map(({ id, contenders }) => [id, ...contenders.map(({ name }) => name)])).toEqual([
    ["B14 sdk short", "statewright", "AI SDK", "AI SDK streamText"],
    ["B14 sdk", "statewright", "AI SDK", "AI SDK streamText"],
  ]);
  expect(agents.installed.filter(({ main }) => main === "ai")).toHaveLength(1);
});

test("lists and runs over HTTP are measured beside the LangGraph dev server and the Mastra server", async () => {
  const { servers, notices } = await loadServerPeers(createInstalledResult);
  expect(notices).toEqual([
    "LangGraph dev server (@langchain/langgraph-api 1.5.1).",
    "Mastra server (@mastra/hono 1.7.9).",
  ]);
  const cases = createCases({ ...noPeers, servers }).filter(({ id }) => id === "B23 list" || id === "B23 run");
  const names = ["statewright", "LangGraph dev server", "Mastra server", "bare server"];
  expect(cases.map(({ contenders }) => contenders.map(({ name }) => name))).toEqual([names, names]);
  const checked = ({ checks = [] }: (typeof cases)[number]) =>
    checks.map(({ baseline, measure }) => [baseline, measure]);
  expect(cases.map(checked)).toEqual(
    cases.map(() =>
      names.slice(1, 3).flatMap((name) => [
        [name, "cpu"],
        [name, "wall"],
      ]),
    ),
  );
});

test("a server of a peer that fails to install is reported and left out", async () => {
  expect(await loadServerPeers(createMissingResult)).toEqual({
    servers: [],
    notices: [
      `LangGraph dev server (@langchain/langgraph-api 1.5.1) is missing: ${reason}.`,
      `Mastra server (@mastra/hono 1.7.9) is missing: ${reason}.`,
    ],
  });
});

test("packages of an installation are counted, with our own separate", () => {
  const packages = {
    "node_modules/statewright": {},
    "node_modules/@statewright/core": {},
    "node_modules/zod": {},
    "node_modules/p-queue/node_modules/eventemitter3": {},
  };
  const lockfile = JSON.stringify({ packages });
  expect(countPackages(lockfile, "statewright")).toEqual({ own: 2, others: 2 });
  expect(countPackages(lockfile, "langchain")).toEqual({ own: 0, others: 4 });
});
