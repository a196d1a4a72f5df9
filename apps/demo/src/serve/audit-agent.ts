/** The agent of `npm run demo -- --serve`: answers about a source tree, and writes a report after approval. */
import { call, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  createAgent,
  defineTool,
  getMessageText,
  listToolCalls,
  type Message,
  type Model,
  type ModelRequest,
} from "statewright";
import { systemWorld } from "statewright/adapter";
import { confirmTools, redactSecrets } from "statewright/middleware";
import * as z from "zod";
import { countLines } from "../checks.ts";
import { formatCount } from "../format-text.ts";
import { isRootReadme, listFiles, readText } from "../source-tree.ts";

/** Access of the agent to the tree, and the writer of its reports. */
export interface AuditAgentParts {
  readonly model: Model;
  /** Root of the source tree, which is only read. */
  readonly root: string;
  /** Writes a report and returns its path. The same key writes the same report again. */
  readonly writeReport: (key: string, text: string) => string;
}

/** Creates the agent. Its tools read the tree; `write_report` asks a person first. */
export function createAuditAgent({ model, root, writeReport }: AuditAgentParts) {
  const measureTree = defineTool({
    name: "measure_tree",
    description: "Counts the files and lines of the source tree, and names its README and its longest files.",
    input: z.object({}),
    effect: "pure",
    safety: { access: "read", filesystem: "read" },
    run: (_args, { signal, progress }) => measure(root, signal, progress),
  });
  const reportTool = defineTool({
    name: "write_report",
    description: "Writes a report for the user.",
    input: z.object({ text: z.string().max(20_000) }),
    effect: "idempotent",
    safety: { access: "write", confirm: "always" },
    run: ({ text }, { idempotencyKey }) => `The report is in ${writeReport(idempotencyKey, text)}.`,
  });
  return createAgent({
    name: "audit",
    model,
    instructions: "You answer questions about a source tree. Measure it first; write a report only when asked for one.",
    tools: [measureTree, reportTool],
    middleware: [confirmTools(), redactSecrets()],
  });
}

/** Creates a scripted model that answers word by word, at the pace of a provider. Needs no key and sends no requests. */
export function createServedModel(chunkMs = 40): Model {
  return scriptedModel(answer, { id: "scripted-model", pace: { world: systemWorld(), firstMs: chunkMs, chunkMs } });
}

function answer({ messages }: ModelRequest): ScriptedReply {
  const lastUser = messages.findLastIndex(({ role }) => role === "user");
  const question = messages[lastUser];
  const results = listResults(messages.slice(lastUser + 1));
  const measured = results.get("measure_tree");
  const written = results.get("write_report");
  if (written !== undefined) return say(`${written} Ask again at any time: the thread keeps what was said.`);
  if (measured === undefined) return call("measure_tree", {});
  const wantsReport = question !== undefined && /\breport\b/i.test(getMessageText(question));
  if (wantsReport)
    return [say("I measured the tree and ask before I write."), call("write_report", { text: measured })];
  return say(
    [
      "Here is what I found in the source tree.",
      measured,
      "Each word of this answer arrives as an event of the thread, and the finished answer is saved with one commit.",
      "Kill the server in the middle of this sentence and start it again: the run continues from its last commit,",
      "the broken answer is taken back, and the whole answer is streamed anew to every client that reconnects.",
      "Ask for a report to see a tool call that waits for your approval.",
    ].join(" "),
  );
}

/** Returns the text of the newest result of each tool. */
function listResults(messages: readonly Message[]): ReadonlyMap<string, string> {
  const names = new Map(
    messages.flatMap((message) =>
      message.role === "assistant" ? listToolCalls(message).map(({ id, name }) => [id, name] as const) : [],
    ),
  );
  return new Map(
    messages.flatMap((message) =>
      message.role === "tool" ? [[names.get(message.callId) ?? "", getMessageText(message)] as const] : [],
    ),
  );
}

async function measure(root: string, signal: AbortSignal, progress: (text: string) => void): Promise<string> {
  const { files, more } = await listFiles(root, signal);
  progress(`${formatCount(files.length, "file")} listed`);
  const lines: { readonly path: string; readonly count: number }[] = [];
  for (const path of files) {
    signal.throwIfAborted();
    const file = await readText(root, path);
    if (file.kind === "text") lines.push({ path, count: countLines(file.text) });
  }
  const total = lines.reduce((sum, { count }) => sum + count, 0);
  const longest = lines
    .toSorted((one, other) => other.count - one.count || (one.path < other.path ? -1 : 1))
    .slice(0, 3);
  const readme = files.find(isRootReadme);
  return [
    `${formatCount(files.length, "file")}${more ? ", the first of a larger tree" : ""}, ${formatCount(total, "line")}.`,
    readme === undefined ? "No README." : `The README is ${readme}.`,
    ...(longest.length === 0 ? [] : [`Longest: ${longest.map(({ path, count }) => `${path} (${count})`).join(", ")}.`]),
  ].join(" ");
}
