/** Scripted model of the demo: decides from the real tool results, needs no key and sends no requests. */
import { call, type ScriptedReply, say, scriptedModel } from "@statewright/testing";
import {
  getMessageText,
  type JsonObject,
  listToolCalls,
  type Message,
  type Model,
  type ModelRequest,
  type ToolCallBlock,
} from "statewright";
import { formatCount } from "./format-text.ts";

/** Creates a scripted model for both model nodes: surveys the tree with tools, then summarizes the findings. */
export function createAuditModel(): Model {
  return scriptedModel((request) => (request.tools.length > 0 ? survey(request.messages) : judge(request)), {
    id: "scripted-model",
  });
}

function survey(messages: readonly Message[]): ScriptedReply {
  const answered = listLatestAnswers(messages);
  const cancelled = answered.filter(({ answer, isError }) => isError && answer === "Cancelled");
  if (cancelled.length > 0) return cancelled.map(({ toolCall }) => call(toolCall.name, toolCall.args as JsonObject));
  const [listing, ...others] = answered;
  if (listing === undefined) return call("list_files", {});
  if (others.length === 0)
    return createInspectionCalls(listing.answer.split("\n").filter((line) => !line.startsWith("(")));
  return say(summarizeSurvey(answered));
}

interface AnsweredCall {
  readonly toolCall: ToolCallBlock;
  readonly answer: string;
  readonly isError: boolean;
}

/** Lists the tool calls so far, each with its latest result. */
function listLatestAnswers(messages: readonly Message[]): readonly AnsweredCall[] {
  const toolCalls = new Map(
    messages
      .flatMap((message) => (message.role === "assistant" ? listToolCalls(message) : []))
      .map((block) => [block.id, block]),
  );
  const latest = new Map<string, AnsweredCall>();
  for (const message of messages) {
    const block = message.role === "tool" ? toolCalls.get(message.callId) : undefined;
    if (message.role !== "tool" || block === undefined) continue;
    latest.set(JSON.stringify([block.name, block.args]), {
      toolCall: block,
      answer: getMessageText(message),
      isError: message.isError,
    });
  }
  return [...latest.values()];
}

/** Creates one message with many parallel tool calls; three of the tools read every file of the tree. */
function createInspectionCalls(paths: readonly string[]): ScriptedReply {
  const patterns = [
    /^readme(\.[a-z]+)?$/i,
    manifestPattern,
    /^(architecture|contributing|changelog)(\.[a-z]+)?$/i,
    /(^|\/)(main|index|app|lib|__main__|__init__|mod)\.(?!json)[a-z]+$/i,
  ];
  const files = new Set(patterns.flatMap((pattern) => paths.find((path) => pattern.test(path)) ?? []));
  return [
    ...[...files].map((path) => call("read_file", { path })),
    call("git_history", {}),
    call("count_lines", {}),
    call("scan_todos", {}),
    call("find_copies", {}),
  ];
}

const manifestPattern =
  /^(package\.json|Cargo\.toml|pyproject\.toml|setup\.py|go\.mod|pom\.xml|build\.gradle|Gemfile|composer\.json|CMakeLists\.txt|Makefile)$/;

function summarizeSurvey(answered: readonly AnsweredCall[]): string {
  const read = answered.filter(({ toolCall, isError }) => toolCall.name === "read_file" && !isError);
  const refused = answered.filter(({ toolCall, isError }) => toolCall.name === "read_file" && isError);
  const readme = read.find(({ toolCall }) => /^readme/i.test(getPath(toolCall)));
  const firstLines = answered
    .filter(({ toolCall, isError }) => !isError && !["read_file", "list_files"].includes(toolCall.name))
    .map(({ answer }) => answer.split("\n")[0] ?? "");
  return [
    readme === undefined ? "The tree has no README." : describeReadme(readme.answer),
    `${formatCount(read.length, "file")} read${refused.length > 0 ? `, ${refused.length} not readable` : ""}.`,
    `Measured: ${firstLines.join("; ")}.`,
  ].join(" ");
}

function getPath({ args }: ToolCallBlock): string {
  return String((args as JsonObject)["path"]);
}

/** Says the title and the first sentence of a README, without markup. */
function describeReadme(readme: string): string {
  const lines = readme
    .replace(/<!--[\s\S]*?-->/g, "")
    .split("\n")
    .map(removeMarkup);
  const underlined = lines.find((line, index) => line !== "" && /^([=~*-])\1{2,}$/.test(lines[index + 1] ?? ""));
  const heading = /^\s*(?:#+\s+|<h1[^>]*>)\s*(.*)$/im.exec(readme)?.[1];
  const title = heading === undefined ? underlined : removeMarkup(heading);
  const sentence = lines.find((line) => line !== title && /^[A-Z"'\p{Lu}].*\s.*\s.*\p{L}/u.test(line));
  const named = title === undefined || title === "" ? "The README has no title" : `The README is titled "${title}"`;
  return `${named}${sentence === undefined ? "." : ` and begins: "${(/^.+?[.!?](?=\s|$)/.exec(sentence)?.[0] ?? sentence).slice(0, 200)}"`}`;
}

/** Removes images, badges, links, HTML elements and emphasis of Markdown and reStructuredText. */
function removeMarkup(line: string): string {
  return line
    .replace(/!\[[^\]]*\](\([^)]*\)|\[[^\]]*\])/g, "")
    .replace(/\[([^\]]*)\](\([^)]*\)|\[[^\]]*\])/g, "$1")
    .replace(/<[^>]*>/g, "")
    .replace(/^\s*#+\s*/, "")
    .replace(/[*`]+|^>\s*/g, "")
    .trim();
}

function judge(request: ModelRequest): ScriptedReply {
  const last = request.messages[request.messages.length - 1];
  const lines = last === undefined ? [] : getMessageText(last).split("\n");
  if (lines.some((line) => line.startsWith("files: none"))) return say("There is nothing to audit: the tree is empty.");
  const findings = lines.filter((line) => line.startsWith("- "));
  const worst =
    findings.find((line) => line.startsWith("- high")) ??
    findings.find((line) => line.startsWith("- medium")) ??
    findings[0];
  if (worst === undefined) return say("No findings: every checked part is in order.");
  const counts = ["high", "medium", "low"].flatMap((severity) => {
    const count = findings.filter((line) => line.startsWith(`- ${severity} `)).length;
    return count === 0 ? [] : [`${count} ${severity}`];
  });
  return say(
    `${formatCount(findings.length, "finding")} (${counts.join(", ")}). Start with this finding: ${worst.slice(2)}`,
  );
}
