/** Questions of runs as forms that a client can show to a person, and what the person filled in as answers. */
import {
  type ElicitRequestFormParams,
  type InputRequest,
  type InputRequiredResult,
  inputRequired,
  inputResponse,
} from "@modelcontextprotocol/server";
import { approval, jsonSchemaOf, type OpenInterrupt } from "@statewright/core";

type Form = ElicitRequestFormParams["requestedSchema"];
type Field = Form["properties"][string];

const approvalSchema: string = JSON.stringify(jsonSchemaOf(approval));

/**
 * Whether a question is about a call that people are to confirm, about one that may have happened, or one of another server
 * to its user: no model answers it.
 */
export function isForPeople({ key, schema }: OpenInterrupt): boolean {
  return JSON.stringify(schema) === approvalSchema || /(?:^|\.)(?:in_doubt|elicit)$/.test(key);
}

/** Answers by the ids of questions, and the questions that nobody answered. */
export interface Answered {
  readonly answers: Readonly<Record<string, unknown>>;
  readonly unanswered: readonly OpenInterrupt[];
}

/** The questions as a request to the client; nothing where one of them does not fit a form. `state` comes back with the answers. */
export function askFor(
  owner: string,
  questions: readonly OpenInterrupt[],
  state: string,
): InputRequiredResult | undefined {
  const inputRequests: Record<string, InputRequest> = {};
  for (const question of questions) {
    const form = formOf(question);
    if (form === undefined) return undefined;
    inputRequests[question.id] = inputRequired.elicit({
      message: messageOf(owner, question),
      requestedSchema: form.schema,
    });
  }
  return inputRequired({ inputRequests, requestState: state });
}

/** What people answered. A call that they declined to confirm has a no; any other question that they declined stays open. */
export function answersIn(
  questions: readonly OpenInterrupt[],
  responses: Readonly<Record<string, unknown>> | undefined,
): Answered {
  const answers: Record<string, unknown> = {};
  const unanswered: OpenInterrupt[] = [];
  for (const question of questions) {
    const response = inputResponse(responses, question.id);
    const form = formOf(question);
    if (response.kind === "elicit" && response.action === "accept" && form !== undefined)
      answers[question.id] = form.answer(response.content ?? {});
    else if (response.kind === "elicit" && response.action === "decline" && isApproval(question))
      answers[question.id] = { approved: false };
    else unanswered.push(question);
  }
  return { answers, unanswered };
}

interface AskedForm {
  readonly schema: Form;
  readonly answer: (content: Readonly<Record<string, unknown>>) => unknown;
}

function isApproval({ schema }: OpenInterrupt): boolean {
  return JSON.stringify(schema) === approvalSchema;
}

function formOf(question: OpenInterrupt): AskedForm | undefined {
  // Nobody can say yes to what is not shown whole.
  if (isApproval(question))
    return messageOf("", question).length > longestApproval
      ? undefined
      : { schema: approvalForm, answer: readApproval };
  const { schema } = question;
  if (!isJsonObject(schema)) return undefined;
  const alone = fieldOf(schema);
  if (alone !== undefined)
    return {
      schema: { type: "object", properties: { answer: alone }, required: ["answer"] },
      answer: ({ answer }) => answer,
    };
  const { type, properties, required } = schema;
  if (type !== "object" || !isJsonObject(properties)) return undefined;
  const fields: Record<string, Field> = {};
  for (const [name, said] of Object.entries(properties)) {
    const field = isJsonObject(said) ? fieldOf(said) : undefined;
    if (field === undefined) return undefined;
    fields[name] = field;
  }
  const needed = Array.isArray(required) ? required.filter((name) => typeof name === "string") : [];
  return { schema: { type: "object", properties: fields, required: needed }, answer: (content) => content };
}

const approvalForm: Form = {
  type: "object",
  properties: {
    approved: { type: "boolean", title: "Run it" },
    reason: { type: "string", title: "Why not", maxLength: 2_000 },
  },
  required: ["approved"],
};

/** Anything but a clear yes is a no. */
function readApproval({ approved, reason }: Readonly<Record<string, unknown>>): unknown {
  if (approved === true) return true;
  return { approved: false, ...(typeof reason === "string" && reason !== "" ? { reason } : {}) };
}

/** What of a schema of one value a form can say. */
const words: Readonly<Record<string, readonly string[]>> = {
  string: ["type", "title", "description", "minLength", "maxLength", "format", "default", "enum"],
  number: ["type", "title", "description", "minimum", "maximum", "default"],
  integer: ["type", "title", "description", "minimum", "maximum", "default"],
  boolean: ["type", "title", "description", "default"],
};

const formats: readonly unknown[] = ["email", "uri", "date", "date-time"];

/** A schema of one plain value as a field; nothing for any other. What it drops, such as a pattern, is checked when the answer comes. */
function fieldOf(schema: Readonly<Record<string, unknown>>): Field | undefined {
  const { type, format } = schema;
  const known = typeof type === "string" ? words[type] : undefined;
  if (known === undefined || (type !== "string" && schema["enum"] !== undefined)) return undefined;
  const said = known.filter((word) => schema[word] !== undefined && !(word === "format" && !formats.includes(format)));
  return Object.fromEntries(said.map((word) => [word, schema[word]])) as Field;
}

function messageOf(owner: string, question: OpenInterrupt): string {
  const { key, payload } = question;
  if (isApproval(question) && isJsonObject(payload))
    return `${String(payload["reason"])}: ${String(payload["tool"])} ${JSON.stringify(payload["args"])}`;
  if (payload === undefined || payload === null) return shortened(`${owner} asks: ${key}`);
  return shortened(`${owner} asks: ${key} ${typeof payload === "string" ? payload : JSON.stringify(payload)}`);
}

const longestApproval = 20_000;

function shortened(text: string): string {
  return text.length <= 4_000 ? text : `${text.slice(0, 4_000)} … (${text.length - 4_000} more characters)`;
}

function isJsonObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
