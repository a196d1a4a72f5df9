import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, expect, test, vi } from "vitest";
import {
  type ConfigurationDescription,
  type ConfiguredTools,
  configTrust,
  describeConfiguration,
  loadTools,
  type PluginOptions,
} from "../src/index.ts";
import { callTool } from "./support/calls.ts";

const home = mkdtempSync(join(tmpdir(), "statewright-trust-"));
const folder = join(home, "workspace");
const marker = join(home, "started");
const file = join(folder, "agent.yaml");
const open: ConfiguredTools[] = [];

afterEach(async () => {
  await Promise.all(open.splice(0).map((each) => each.close()));
  rmSync(home, { recursive: true });
});

/**
 * Creates a workspace with a configuration whose plugin writes a marker at its start and returns one environment
 * variable.
 */
function workspace(): void {
  mkdirSync(folder, { recursive: true });
  const plugin = `import { writeFileSync } from "node:fs";
writeFileSync(${JSON.stringify(marker)}, "");
process.stdin.on("data", () => {
  const content = [{ type: "text", text: String(process.env.OUR_SECRET) }];
  const parameters = { type: "object" };
  console.log(JSON.stringify({ name: "echo", description: "Echo.", parameters, content }));
});`;
  writeFileSync(join(folder, "plugin.mjs"), plugin);
  writeFileSync(file, `tools: { plugins: [{ path: ${process.execPath}, args: [plugin.mjs] }] }`);
}

async function refusal(trust = configTrust(join(home, "trusted.json"))): Promise<ConfigurationDescription> {
  const error: unknown = await loadTools(file, { trust }).then(
    (each) => open.push(each),
    (thrown: unknown) => thrown,
  );
  expect(error).toMatchObject({
    code: "untrusted_configuration",
    message: expect.stringMatching(/agent\.yaml .*would start: .*plugin\.mjs/),
  });
  expect(existsSync(marker)).toBe(false);
  return (error as { readonly details: ConfigurationDescription }).details;
}

async function load(plugins: Pick<PluginOptions, "timeoutMs" | "staleGraceMs"> = {}): Promise<ConfiguredTools> {
  const loaded = await loadTools(file, { trust: configTrust(join(home, "trusted.json")), plugins });
  open.push(loaded);
  return loaded;
}

test("a configuration found in a workspace starts nothing until the user trusts it [R18]", async () => {
  workspace();
  const found = await refusal();
  expect(found).toEqual(await describeConfiguration(file));
  expect(found.starts).toEqual([`${process.execPath} plugin.mjs`]);
  await configTrust(join(home, "deep/er/trusted.json")).add(found);
  await refusal();
  await configTrust(join(home, "trusted.json")).add(found);
  expect((await load()).tools).toHaveLength(1);
  await configTrust(join(home, "trusted.json")).remove(file);
  rmSync(marker);
  await refusal();
});

test("trust covers the configuration and its programs, and a change of either asks again [R18]", async () => {
  workspace();
  const trust = configTrust(join(home, "trusted.json"));
  const first = await refusal();
  await trust.add(first);
  writeFileSync(join(folder, "plugin.mjs"), "process.exit(1)");
  const second = await refusal();
  expect(second.digest).not.toBe(first.digest);
  // A link that leads out of the workspace may be recreated inside it.
  const digests: string[] = [];
  for (const name of ["one", "two"]) {
    writeFileSync(join(home, `${name}.mjs`), "");
    rmSync(join(folder, "plugin.mjs"));
    symlinkSync(join(home, `${name}.mjs`), join(folder, "plugin.mjs"));
    digests.push((await refusal()).digest);
  }
  expect(new Set([first.digest, second.digest, ...digests]).size).toBe(4);
  rmSync(join(folder, "plugin.mjs"));
  workspace();
  writeFileSync(
    file,
    `tools: { plugins: [{ path: "./run\\e[2K", args: [plugin.mjs, "a b"], env: { T: "$\{KEY}" } }] }`,
  );
  expect((await refusal()).starts).toEqual([`T=$\{KEY} "./run\\u001b[2K" plugin.mjs "a b"`]);
  workspace();
  expect((await load()).tools).toHaveLength(1);
});

test("a workspace cannot store its own trust, a damaged trust file trusts nothing, and its plugins see no secrets of ours [R18]", async () => {
  workspace();
  const found = await refusal();
  const inside = configTrust(join(folder, ".trusted.json"));
  await expect(inside.add(found)).rejects.toMatchObject({ code: "invalid_option" });
  writeFileSync(join(folder, ".trusted.json"), JSON.stringify({ [file]: found.digest }));
  await expect(loadTools(file, { trust: inside })).rejects.toMatchObject({ code: "invalid_option" });
  writeFileSync(join(home, "trusted.json"), "[");
  await expect(load()).rejects.toThrow("damaged");
  rmSync(join(home, "trusted.json"));
  await configTrust(join(home, "trusted.json")).add(found);
  vi.stubEnv("OUR_SECRET", "5ecret");
  expect(await callTool((await load()).tools, {})).toBe("undefined");
  const own = await loadTools(file);
  open.push(own);
  expect(await callTool(own.tools, {})).toBe("5ecret");
  vi.unstubAllEnvs();
});

test("an MCP server of an untrusted workspace is neither started nor contacted [R18]", async () => {
  workspace();
  const servers = `[{ name: a, command: ${process.execPath}, args: [plugin.mjs] }, { name: b, url: "https://mcp.example/" }]`;
  writeFileSync(file, `tools: { mcp: ${servers} }`);
  const { starts } = await refusal();
  expect(starts.join()).toMatch(/plugin\.mjs.*https:\/\/mcp\.example\//);
});

test("a configuration that starts nothing needs no trust [R18]", async () => {
  workspace();
  writeFileSync(file, "tools: { preset: none }");
  const trust = configTrust(join(home, "trusted.json"));
  open.push(await loadTools(file, { trust, presets: { none: () => [] } }));
  expect(existsSync(trust.path)).toBe(false);
});

test("the trust request lists MCP servers of a workspace: programs, and URLs with the data sent to them", async () => {
  workspace();
  const reference = ["$", "{TOKEN}"].join("");
  writeFileSync(
    file,
    JSON.stringify({
      tools: {
        mcp: [
          { name: "a", command: "node", args: ["plugin.mjs"] },
          { name: "b", url: "https://mcp.example/mcp", headers: { authorization: `Bearer ${reference}` } },
        ],
      },
    }),
  );
  const { starts, digest } = await refusal();
  expect(starts).toEqual([
    "node plugin.mjs",
    `a connection to https://mcp.example/mcp authorization: "Bearer ${reference}"`,
  ]);
  writeFileSync(join(folder, "plugin.mjs"), "another");
  expect((await describeConfiguration(file)).digest).not.toBe(digest);
});

test("trust covers programs inside an argument, behind an expanded variable, or in an environment variable", async () => {
  workspace();
  const reference = ["$", "{OUR_PLACE}"].join("");
  vi.stubEnv("OUR_PLACE", folder);
  const hooks = join(folder, "hooks.mjs");
  const words = [
    { args: ["--import=./hooks.mjs", "plugin.mjs"] },
    { args: ["-r./hooks.mjs", "plugin.mjs"] },
    { args: [`${reference}/hooks.mjs`] },
    { args: ["--import", pathToFileURL(hooks).href, "plugin.mjs"] },
    { args: ["plugin.mjs"], env: { NODE_OPTIONS: "--no-warnings --import ./hooks.mjs" } },
  ];
  const unseen = [];
  for (const word of words) {
    writeFileSync(file, JSON.stringify({ tools: { plugins: [{ path: "node", ...word }] } }));
    const digests = [];
    for (const text of ["one", "another"]) {
      writeFileSync(hooks, text);
      digests.push((await describeConfiguration(file)).digest);
    }
    if (digests[0] === digests[1]) unseen.push(word);
  }
  vi.unstubAllEnvs();
  expect(unseen).toEqual([]);
});

test("trust covers the file that is started when a folder is named", async () => {
  workspace();
  writeFileSync(file, JSON.stringify({ tools: { plugins: [{ path: "node", args: ["server"] }] } }));
  const server = join(folder, "server");
  mkdirSync(server, { recursive: true });
  writeFileSync(join(server, "package.json"), JSON.stringify({ main: "." }));
  const digests = new Set<string>();
  for (const text of ["one", "another"]) {
    writeFileSync(join(server, "index.js"), text);
    digests.add((await describeConfiguration(file)).digest);
  }
  writeFileSync(join(server, "package.json"), JSON.stringify({ main: "run.mjs" }));
  for (const text of ["one", "another"]) {
    writeFileSync(join(server, "run.mjs"), text);
    digests.add((await describeConfiguration(file)).digest);
  }
  expect(digests.size).toBe(4);
});

test("an exited plugin restarts as long as its program is unchanged since it was trusted", async () => {
  workspace();
  await configTrust(join(home, "trusted.json")).add(await describeConfiguration(file));
  const { tools, plugins } = await load();
  const end = async (): Promise<void> => {
    process.kill(plugins[0]?.pid ?? 0);
    await expect.poll(() => plugins[0]?.pid).toBeUndefined();
  };
  await end();
  expect(await callTool(tools, {})).toBe("undefined");
  await end();
  rmSync(marker);
  writeFileSync(join(folder, "plugin.mjs"), `import "node:fs"; ${readFileSync(join(folder, "plugin.mjs"), "utf8")}`);
  expect(await callTool(tools, {})).toContain("its current state is not approved");
  expect(existsSync(marker)).toBe(false);
});

test("a plugin that owes an answer does not restart when its changed program is not trusted", async () => {
  workspace();
  const program = join(folder, "plugin.mjs");
  // The plugin describes itself and answers no call.
  const silent = readFileSync(program, "utf8").replace("process.stdin.on", "process.stdin.once");
  writeFileSync(program, silent);
  const trust = configTrust(join(home, "trusted.json"));
  await trust.add(await describeConfiguration(file));
  const { tools } = await load({ timeoutMs: 1, staleGraceMs: 1 });
  expect(await callTool(tools, {})).toContain("Timed out");
  rmSync(marker);
  writeFileSync(program, `import "node:fs"; ${silent}`);
  // The second call lasts longer than the missing answer of the first one.
  const timed = tools.map((tool) => ({ ...tool, spec: { ...tool.spec, timeoutMs: undefined } }));
  expect(await callTool(timed, {})).toContain("its current state is not approved");
  expect(existsSync(marker)).toBe(false);
});
