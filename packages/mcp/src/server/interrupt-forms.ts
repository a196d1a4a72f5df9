/** Interrupts as forms of an MCP client, and form responses as answers. */
import {
  type ElicitRequestFormParams,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { approval, type OpenInterrupt } from "@statewright/core";
import { toJsonSchema } from "@statewright/core/adapter";
import { isJsonObject } from "@statewright/json-schema";

type Form = ElicitRequestFormParams["requestedSchema"];
type Field = Form["properties"][string];

const approvalSchema: string = JSON.stringify(toJsonSchema(approval));

/**
 * Returns true for an interrupt that no model may answer: an approval of a tool call, a tool call in doubt, or an
 * elicitation of another MCP server.
 */
export function requiresPerson({ key, schema }: OpenInterrupt): boolean {
  return JSON.stringify(schema) === approvalSchema || /(?:^|\.)(?:in_doubt|elicit)$/.test(key);
}

/** Answers by interrupt id, and interrupts without an answer. */
export interface FormAnswers {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly unanswered: readonly OpenInterrupt[];
}

/**
 * Creates a form request for the interrupts; undefined if an interrupt does not fit a form. The client returns
 * `state` with the answers.
 */
export function createFormRequest(
  owner: string,
  interrupts: readonly OpenInterrupt[],
  state: string,
): InputRequiredResult | undefined {
  const inputRequests: Record<string, InputRequest> = {};
  for (const interrupt of interrupts) {
    const form = toForm(interrupt);
    if (form === undefined) return undefined;
    inputRequests[interrupt.id] = inputRequired.elicit({
      message: createMessage(owner, interrupt),
      requestedSchema: form.schema,
    });
  }
  return inputRequired({ inputRequests, requestState: state });
}

/** Reads form responses. A declined approval becomes a denial; any other declined interrupt stays open. */
export function readFormAnswers(
  interrupts: readonly OpenInterrupt[],
  responses: Readonly<Record<string, unknown>> | undefined,
): FormAnswers {
  const answers: Record<string, unknown> = {};
  const unanswered: OpenInterrupt[] = [];
  for (const interrupt of interrupts) {
    const response = inputResponse(responses, interrupt.id);
    const form = toForm(interrupt);
    if (response.kind === "elicit" && response.action === "accept" && form !== undefined)
      answers[interrupt.id] = form.toAnswer(response.content ?? {});
    else if (response.kind === "elicit" && response.action === "decline" && isApproval(interrupt))
      answers[interrupt.id] = { approved: false };
    else unanswered.push(interrupt);
  }
  return { answers, unanswered };
}

interface InterruptForm {
  readonly schema: Form;
  readonly toAnswer: (content: Readonly<Record<string, unknown>>) => unknown;
}

function isApproval({ schema }: OpenInterrupt): boolean {
  return JSON.stringify(schema) === approvalSchema;
}

function toForm(interrupt: OpenInterrupt): InterruptForm | undefined {
  // An approval must show the complete tool call.
  if (isApproval(interrupt))
    return createMessage("", interrupt).length > maxApprovalLength
      ? undefined
      : { schema: approvalForm, toAnswer: readApproval };
  const { schema } = interrupt;
  if (!isJsonObject(schema)) return undefined;
  const singleField = toField(schema);
  if (singleField !== undefined)
    return {
      schema: { type: "object", properties: { answer: singleField }, required: ["answer"] },
      toAnswer: ({ answer }) => answer,
    };
  const { type, properties, required } = schema;
  if (type !== "object" || !isJsonObject(properties)) return undefined;
  const fields: Record<string, Field> = {};
  for (const [name, property] of Object.entries(properties)) {
    const field = isJsonObject(property) ? toField(property) : undefined;
    if (field === undefined) return undefined;
    fields[name] = field;
  }
  const requiredNames = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  return { schema: { type: "object", properties: fields, required: requiredNames }, toAnswer: (content) => content };
}

const approvalForm: Form = {
  type: "object",
  properties: {
    approved: { type: "boolean", title: "Run it" },
    reason: { type: "string", title: "Why not", maxLength: 2_000 },
  },
  required: ["approved"],
};

/** Any response except `approved: true` is a denial. */
function readApproval({ approved, reason }: Readonly<Record<string, unknown>>): unknown {
  if (approved === true) return true;
  return { approved: false, ...(typeof reason === "string" && reason !== "" ? { reason } : {}) };
}

/** JSON Schema keywords supported by form fields. */
const fieldKeywords: Readonly<Record<string, readonly string[]>> = {
  string: ["type", "title", "description", "minLength", "maxLength", "format", "default", "enum"],
  number: ["type", "title", "description", "minimum", "maximum", "default"],
  integer: ["type", "title", "description", "minimum", "maximum", "default"],
  boolean: ["type", "title", "description", "default"],
};

const formats: readonly unknown[] = ["email", "uri", "date", "date-time"];

/**
 * Converts a schema of a primitive value to a form field; undefined for other schemas. Dropped keywords, such as a
 * pattern, are validated with the answer.
 */
function toField(schema: Readonly<Record<string, unknown>>): Field | undefined {
  const { type, format } = schema;
  const keywords = typeof type === "string" ? fieldKeywords[type] : undefined;
  if (keywords === undefined || (type !== "string" && schema["enum"] !== undefined)) return undefined;
  const usedKeywords = keywords.filter(
    (word) => schema[word] !== undefined && !(word === "format" && !formats.includes(format)),
  );
  return Object.fromEntries(usedKeywords.map((word) => [word, schema[word]])) as Field;
}

function createMessage(owner: string, interrupt: OpenInterrupt): string {
  const { key, payload } = interrupt;
  if (isApproval(interrupt) && isJsonObject(payload))
    return `${String(payload["reason"])}: ${String(payload["tool"])} ${JSON.stringify(payload["args"])}`;
  if (payload === undefined || payload === null) return truncateMessage(`${owner} asks: ${key}`);
  return truncateMessage(`${owner} asks: ${key} ${typeof payload === "string" ? payload : JSON.stringify(payload)}`);
}

const maxApprovalLength = 20_000;

function truncateMessage(text: string): string {
  return text.length <= 4_000 ? text : `${text.slice(0, 4_000)} … (${text.length - 4_000} more characters)`;
}
