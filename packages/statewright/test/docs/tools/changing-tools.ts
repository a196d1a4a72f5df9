import { mkdir, rename, writeFile } from "node:fs/promises";
import {
  type ConfigChange,
  type ConfigurationDescription,
  configTrust,
  isUntrustedConfiguration,
  loadTools,
} from "@statewright/plugins";
import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, getMessageText, isStatewrightError, memoryStore, toolRegistry } from "statewright";
import * as z from "zod";

const tool = (name: string, run: () => string) =>
  defineTool({ name, description: `The tool ${name}.`, input: z.object({}), effect: "pure", run });
const search = tool("search", () => "There are 3 lamps.");
const order = tool("order", () => "A lamp is ordered.");
const store = memoryStore();
const model = scriptedModel([[call("search", {}), call("order", {})], call("order", {}), say("It is ordered.")]);

// change the registry
const registry = toolRegistry([search]);
const shop = createAgent({ name: "shop", model, store, tools: registry });
const run = shop.run({ thread: "t1", input: "Order a lamp." });
run.on((event) => {
  if (event.type === "model.started") console.log(`it is shown: ${registry.names()}`);
  if (event.type === "tool.started" && event.tool === "search") registry.replaceAll([order]);
});
const { state } = await run.result;
for (const message of state.messages)
  if (message.role === "tool") console.log(`model reads: ${getMessageText(message)}`);

await mkdir("workspace");
const program = (name: string) =>
  `process.stdin.on("data", () => console.log(JSON.stringify({ name: "${name}", description: "A tool.", parameters: { type: "object" } })));`;
for (const name of ["lamps", "tables"]) await writeFile(`workspace/${name}.mjs`, program(name));
const naming = (names: readonly string[]) =>
  JSON.stringify({ tools: { plugins: names.map((name) => ({ path: "node", args: [`${name}.mjs`] })) } });
await writeFile("workspace/agent.json", naming(["lamps"]));
const asked: ConfigurationDescription[] = [];
const askPerson = async (found: ConfigurationDescription) => {
  asked.push(found);
  console.log(`may it start: ${found.starts}`);
  return true;
};
let onChange = (_change: ConfigChange): void => undefined;

// trust a configuration
const trust = configTrust("trusted.json"); // without a path: the user's own file
async function load(): Promise<Awaited<ReturnType<typeof loadTools>>> {
  try {
    return await loadTools("workspace/agent.json", { trust, watch: (change) => onChange(change) });
  } catch (error) {
    if (!isUntrustedConfiguration(error) || !(await askPerson(error.details))) throw error;
    await trust.add(error.details);
    return load();
  }
}
const configured = await load();

const observed = new Promise<ConfigChange>((resolve) => {
  onChange = resolve;
});
await writeFile("workspace/new.json", naming(["lamps", "tables"]));
await rename("workspace/new.json", "workspace/agent.json");
const refused = await observed;
console.log(isStatewrightError(refused.error) ? refused.error.code : "", configured.registry.names());

// reload
if (isUntrustedConfiguration(refused.error)) {
  const found = refused.error.details;
  if (await askPerson(found)) await trust.add(found);
  const { added, removed } = await configured.reload();
  console.log({ added, removed });
}

// use
const agent = createAgent({ name: "seller", model, store, tools: configured.registry });
console.log(agent.name, configured.registry.names());
await configured.close();
