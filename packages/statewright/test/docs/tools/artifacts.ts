import { call, say, scriptedModel } from "@statewright/testing";
import { createAgent, defineTool, memoryStore, readArtifact, type ToolMessage } from "statewright";
import * as z from "zod";

const entry = (at: number): string =>
  `12:${String(at % 60).padStart(2, "0")} request ${at} by token-81f3 took ${at % 90} ms\n`;

const logs = defineTool({
  name: "read_log",
  description: "Read the log of a service.",
  input: z.object({ service: z.string() }),
  effect: "pure",
  safety: { access: "read", redact: { result: (text) => text.replaceAll("token-81f3", "[token]") } },
  limits: { artifactBytes: 600 },
  run: ({ service }) => Array.from({ length: 2_000 }, (_, at) => entry(at)).join("") + `end of the log of ${service}\n`,
});

const report = defineTool({
  name: "make_report",
  description: "Make a report of the month.",
  input: z.object({}),
  effect: "pure",
  run: () => ({
    content: "12 rows.",
    artifacts: [{ name: "report.csv", mimeType: "text/csv", body: "month,cents\n1,4200\n" }],
  }),
});

const model = scriptedModel([
  call(logs, { service: "shop" }),
  ({ messages }) => {
    const seen = textOf(messages.at(-1) as ToolMessage);
    const [handle = ""] = /[0-9a-f]{16}/.exec(seen) ?? [];
    return call("read_artifact", { artifact: handle, offset: 50_000, limit: 100 });
  },
  call(report, {}),
  say("Done."),
]);

const store = memoryStore();
const agent = createAgent({ name: "operator", model, tools: [logs, report, readArtifact()], store });

const handle = agent.run({ thread: "t1", input: "What happened in the shop?" });
handle.on((event) => {
  if (event.type !== "tool.completed") return;
  for (const { key, name, bytes } of event.result.artifacts ?? [])
    console.log(`${name}: ${bytes} bytes, ${key.slice(0, 8)}…`);
});
const { state } = await handle.result;

for (const message of state.messages)
  if (message.role === "tool") console.log(`--- ${message.name}\n${textOf(message)}`);

for (const { key, name, mimeType, call: made } of await store.artifacts.list("t1")) {
  const body = await store.artifacts.read("t1", key);
  console.log(`${name} (${mimeType}) of ${made}: ${body?.length} bytes`);
}

function textOf(message: ToolMessage): string {
  return message.content
    .map((block) => (block.type === "artifact" ? block.preview : block.type === "text" ? block.text : ""))
    .join("\n");
}
