/** The model without a key: it decides what to do next from what the tools really returned, and sends nothing anywhere. */
import { call, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  callsOf,
  type JsonObject,
  type Message,
  type Model,
  type ModelRequest,
  type ToolCallBlock,
  textOf,
} from "statewright";
import { count } from "./format-text.ts";

/** A model that plays the auditor: it surveys the tree, then puts the findings into words. */
export function rehearsedModel(): Model {
  return scriptedModel((request) => (request.tools.length > 0 ? survey(request.messages) : judge(request)), {
    id: "rehearsed",
  });
}

function survey(messages: readonly Message[]): ScriptedReply {
  const answered = newestAnswers(messages);
  const stopped = answered.filter(({ answer, isError }) => isError && answer === "Cancelled");
  if (stopped.length > 0) return stopped.map(({ asked }) => call(asked.name, asked.args as JsonObject));
  const [listing, ...others] = answered;
  if (listing === undefined) return call("list_files", {});
  if (others.length === 0) return lookCloser(listing.answer.split("\n").filter((line) => !line.startsWith("(")));
  return say(impression(answered));
}

interface Answered {
  readonly asked: ToolCallBlock;
  readonly answer: string;
  readonly isError: boolean;
}

/** What was asked so far, each with what came back the last time. */
function newestAnswers(messages: readonly Message[]): readonly Answered[] {
  const asked = new Map(
    messages
      .flatMap((message) => (message.role === "assistant" ? callsOf(message) : []))
      .map((block) => [block.id, block]),
  );
  const newest = new Map<string, Answered>();
  for (const message of messages) {
    const block = message.role === "tool" ? asked.get(message.callId) : undefined;
    if (message.role !== "tool" || block === undefined) continue;
    newest.set(JSON.stringify([block.name, block.args]), {
      asked: block,
      answer: textOf(message),
      isError: message.isError,
    });
  }
  return [...newest.values()];
}

/** One message with many calls, which run in parallel: some are quick, three read every file of the tree. */
function lookCloser(paths: readonly string[]): ScriptedReply {
  const wanted = [
    /^readme(\.|$)/i,
    manifest,
    /^(architecture|contributing|changelog)(\.|$)/i,
    /(^|\/)(main|index|app|lib)\.[a-z]+$/i,
  ];
  const files = new Set(wanted.flatMap((pattern) => paths.find((path) => pattern.test(path)) ?? []));
  return [
    ...[...files].map((path) => call("read_file", { path })),
    call("git_history", {}),
    call("count_lines", {}),
    call("scan_todos", {}),
    call("find_copies", {}),
  ];
}

const manifest =
  /^(package\.json|Cargo\.toml|pyproject\.toml|go\.mod|pom\.xml|build\.gradle|Gemfile|composer\.json|CMakeLists\.txt|Makefile)$/;

function impression(answered: readonly Answered[]): string {
  const read = answered.filter(({ asked, isError }) => asked.name === "read_file" && !isError);
  const refused = answered.filter(({ asked, isError }) => asked.name === "read_file" && isError);
  const title = read.flatMap(({ answer }) => /^#\s+(.+)$/m.exec(answer)?.[1] ?? [])[0];
  const firstLines = answered
    .filter(({ asked, isError }) => !isError && !["read_file", "list_files"].includes(asked.name))
    .map(({ answer }) => answer.split("\n")[0] ?? "");
  return [
    title === undefined ? "The tree does not say in a README what it is." : `The README calls it "${title.trim()}".`,
    `${count(read.length, "file")} read${refused.length > 0 ? `, ${refused.length} could not be` : ""}.`,
    `Measured: ${firstLines.join("; ")}.`,
  ].join(" ");
}

function judge(request: ModelRequest): ScriptedReply {
  const last = request.messages[request.messages.length - 1];
  const lines = last === undefined ? [] : textOf(last).split("\n");
  if (lines.some((line) => line.startsWith("files: none"))) return say("There is nothing to audit: the tree is empty.");
  const findings = lines.filter((line) => line.startsWith("- "));
  const worst =
    findings.find((line) => line.startsWith("- high")) ??
    findings.find((line) => line.startsWith("- medium")) ??
    findings[0];
  if (worst === undefined) return say("Nothing stands out: every part that was checked has what it needs.");
  const parts = new Set(findings.map((line) => /^- \w+ (.+?): /.exec(line)?.[1]));
  return say(
    `${count(findings.length, "finding")} in ${count(parts.size, "part")}. Begin with this one: ${worst.slice(2)}`,
  );
}
