/** Elicitations of an MCP server, and answers of people. */
import { createHash } from "node:crypto";
import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import { type JsonObject, StatewrightError } from "@statewright/core";
import { ajvValidator, isJsonObject } from "@statewright/json-schema";

/** Elicitation: a request of a server for input by a person. */
export interface McpElicitation {
  /** Digest; equal for equal elicitations. */
  readonly key: string;
  readonly message: string;
  /** JSON Schema of accepted content: an object of strings, numbers, booleans and choices. */
  readonly requestedSchema: JsonObject;
}

/** Answer of a person: the requested content, a refusal, or a cancel. */
export type McpAnswer =
  | { readonly action: "accept"; readonly content: Readonly<Record<string, string | number | boolean | string[]>> }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** Answered elicitation. */
export interface AnsweredElicitation {
  readonly key: string;
  readonly answer: McpAnswer;
}

/** Converts an elicitation request. Throws for URL mode: people are never sent to an address. */
export function toElicitation({ params }: ElicitRequest): McpElicitation {
  if (params.mode === "url" || !("requestedSchema" in params)) throw new Error("Only form elicitations are supported.");
  const { message } = params;
  const requestedSchema = JSON.parse(JSON.stringify(params.requestedSchema)) as JsonObject;
  const key = createHash("sha256")
    .update(JSON.stringify([message, requestedSchema]))
    .digest("hex")
    .slice(0, 16);
  return { key, message, requestedSchema };
}

/** Returns the problem of an answer as text; undefined for a valid answer. */
export function findAnswerProblem(answer: McpAnswer, { requestedSchema }: McpElicitation): string | undefined {
  if (answer.action !== "accept") return undefined;
  let issues: ReturnType<ReturnType<typeof ajvValidator>>;
  try {
    issues = ajvValidator(requestedSchema)(answer.content);
  } catch (cause) {
    throw new StatewrightError("invalid_tool", {
      what: "an elicitation of an MCP server has an invalid schema",
      next: "Fix the server",
      cause,
    });
  }
  if (issues.length === 0) return undefined;
  return issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

/** Converts an answer to the result for the server. */
export function toElicitResult(answer: McpAnswer): ElicitResult {
  if (answer.action !== "accept") return { action: answer.action };
  return { action: "accept", content: { ...answer.content } };
}

/** Parses an answer. Returns the problem as a string for an invalid answer. */
export function parseAnswer(input: unknown): McpAnswer | string {
  const expected = 'expected { action: "accept", content }, { action: "decline" } or { action: "cancel" }';
  if (!isJsonObject(input)) return expected;
  const { action, content, ...rest } = input;
  if (Object.keys(rest).length > 0) return expected;
  if ((action === "decline" || action === "cancel") && content === undefined) return { action };
  if (action !== "accept" || !isJsonObject(content)) return expected;
  const isValid = Object.values(content).every(
    (value) =>
      ["string", "number", "boolean"].includes(typeof value) ||
      (Array.isArray(value) && value.every((item) => typeof item === "string")),
  );
  return isValid ? { action, content: content as Extract<McpAnswer, { action: "accept" }>["content"] } : expected;
}
