/** Questions of a server to a person, and their answers. */
import { createHash } from "node:crypto";
import type { ElicitRequest, ElicitResult } from "@modelcontextprotocol/client";
import { type JsonObject, StatewrightError } from "@statewright/core";
import { ajvValidator } from "../json-schema.ts";
import { isObject } from "../protocol.ts";

/** What a server wants to know of a person. */
export interface McpQuestion {
  /** The same for the same question. */
  readonly key: string;
  readonly message: string;
  /** JSON Schema of the content of a yes: an object of texts, numbers, flags and choices. */
  readonly requestedSchema: JsonObject;
}

/** What a person answers: the content that was asked for, a no, or no decision. */
export type McpAnswer =
  | { readonly action: "accept"; readonly content: Readonly<Record<string, string | number | boolean | string[]>> }
  | { readonly action: "decline" }
  | { readonly action: "cancel" };

/** A question that was answered. */
export interface AnsweredQuestion {
  readonly key: string;
  readonly answer: McpAnswer;
}

/** The question of a request. Throws for one that is no form: nobody is led to an address. */
export function questionOf({ params }: ElicitRequest): McpQuestion {
  if (params.mode === "url" || !("requestedSchema" in params)) throw new Error("Only forms can be asked.");
  const { message } = params;
  const requestedSchema = JSON.parse(JSON.stringify(params.requestedSchema)) as JsonObject;
  const key = createHash("sha256")
    .update(JSON.stringify([message, requestedSchema]))
    .digest("hex")
    .slice(0, 16);
  return { key, message, requestedSchema };
}

/** What is wrong with an answer, in a sentence; nothing where it fits the question. */
export function problemOf(answer: McpAnswer, { requestedSchema }: McpQuestion): string | undefined {
  if (answer.action !== "accept") return undefined;
  let issues: ReturnType<ReturnType<typeof ajvValidator>>;
  try {
    issues = ajvValidator(requestedSchema)(answer.content);
  } catch (cause) {
    throw new StatewrightError("invalid_tool", {
      what: "a question of an MCP server has a schema that cannot be used",
      next: "Mend the server",
      cause,
    });
  }
  if (issues.length === 0) return undefined;
  return issues.map(({ path, message }) => (path === "" ? message : `${path}: ${message}`)).join("; ");
}

/** The answer as the server gets it. */
export function resultOfAnswer(answer: McpAnswer): ElicitResult {
  if (answer.action !== "accept") return { action: answer.action };
  return { action: "accept", content: { ...answer.content } };
}

/** An answer by its form; what is wrong with it otherwise. */
export function readAnswer(given: unknown): McpAnswer | string {
  const wanted = 'expected { action: "accept", content }, { action: "decline" } or { action: "cancel" }';
  if (!isObject(given)) return wanted;
  const { action, content, ...rest } = given;
  if (Object.keys(rest).length > 0) return wanted;
  if ((action === "decline" || action === "cancel") && content === undefined) return { action };
  if (action !== "accept" || !isObject(content)) return wanted;
  const isFit = Object.values(content).every(
    (value) =>
      ["string", "number", "boolean"].includes(typeof value) ||
      (Array.isArray(value) && value.every((item) => typeof item === "string")),
  );
  return isFit ? { action, content: content as Extract<McpAnswer, { action: "accept" }>["content"] } : wanted;
}
