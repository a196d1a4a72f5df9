/** `generate`: the question of a node or a tool to a model, as a single recorded effect. */
import { fingerprint } from "../../base/ids.ts";
import { invalidOption } from "../../base/invalid-option.ts";
import { isPlainObject } from "../../base/json.ts";
import { checkOptions, listOptionNames } from "../../base/options.ts";
import { checkCallPolicy, type ModelCallPolicy, resolveFallback, splitModels } from "../../model/call-policy.ts";
import { type AssistantMessage, findMessageIssue, getMessageText, type Message } from "../../model/message.ts";
import { type ModelRequest, settingNames } from "../../model/model.ts";
import { type AnyModel, isAnyModel } from "../../model/model-source.ts";
import { toUserBlocks } from "../../model/new-message.ts";
import {
  type AnswerFormat,
  chooseOutputStrategy,
  parseAnswer,
  parseAnswerFormat,
} from "../../tool/definition/answer-format.ts";
import type { Generated, GenerateRequest } from "../../tool/definition/generate.ts";
import type { RunEnvironment } from "../session/parts/run-environment.ts";
import { createOutputError, createOutputReview, type ReplyReview } from "./reply-review.ts";

/** A question to a model, ready to be sent. */
export interface Question {
  /** Names the question in errors. */
  readonly where: string;
  readonly model: AnyModel;
  readonly policy: ModelCallPolicy;
  readonly request: ModelRequest;
  readonly format: AnswerFormat | undefined;
  readonly review: ReplyReview | undefined;
  /** Key of the recorded answer: the key of the request, or a digest of the request. */
  readonly key: string;
  /** True for a key of the request itself. */
  readonly hasOwnKey: boolean;
}

const requestNames = listOptionNames<GenerateRequest>({
  model: true,
  system: true,
  prompt: true,
  messages: true,
  output: true,
  settings: true,
  key: true,
  timeouts: true,
  retry: true,
  fallback: true,
});

/** Suggestions for option names of other frameworks. */
const replacements: Readonly<Record<string, string>> = {
  ...Object.fromEntries(settingNames.map((name) => [name, `settings: { ${name} }`])),
  maxTokens: "settings: { maxOutputTokens }",
  maxRetries: "retry: { attempts }",
  instructions: "system",
  schema: "output",
};

/**
 * Parses a question. Throws `invalid_option` for an invalid one, and for a model that cannot be found. `owner` asks the
 * question.
 */
export function parseQuestion(
  { findModel, graphMiddleware }: Pick<RunEnvironment, "findModel" | "graphMiddleware">,
  owner: string,
  given: GenerateRequest<unknown>,
): Question {
  const where = `generate in ${owner}`;
  checkQuestion(where, given);
  const { system, output, settings, key, retry = { attempts: 3 }, timeouts } = given;
  const { model, fallback } = splitModels(where, given);
  const policy = { retry, timeouts, fallback };
  checkCallPolicy(where, policy);
  const format = output === undefined ? undefined : parseAnswerFormat(where, output);
  const messages = readMessages(where, given);
  const request: ModelRequest = {
    ...settings,
    ...(system === undefined ? {} : { instructions: system }),
    messages,
    tools: [],
    ...(format === undefined ? {} : { output: format.native }),
  };
  const policies = [policy, ...graphMiddleware.map(({ modelCall = {} }) => modelCall)];
  const listModels = (): readonly AnyModel[] => [model, ...policies.flatMap((each) => resolveFallback(each).models)];
  const review =
    format === undefined
      ? undefined
      : createOutputReview(
          where,
          format,
          chooseOutputStrategy(
            format,
            listModels().map((each) => findModel(each, where)),
          ),
        );
  return {
    where,
    model,
    policy,
    request,
    format,
    review,
    key: key ?? createKey(request),
    hasOwnKey: key !== undefined,
  };
}

/** Returns the answer of a message. Throws `invalid_output` for a message that does not fit the schema. */
export function toGenerated({ where, format }: Question, message: AssistantMessage): Generated<unknown> {
  const answer = { text: getMessageText(message), message, usage: message.usage };
  if (format === undefined) return { ...answer, object: undefined };
  const read = parseAnswer(format.schema, message);
  if (read.ok) return { ...answer, object: read.value };
  const { ended } = message;
  throw createOutputError(where, message, ended === undefined ? read.issues : `the call was ended by "${ended.by}"`);
}

/** Key of a question by its content, so that a recorded answer counts only for an equal question. */
function createKey({ headers: _headers, messages, ...request }: ModelRequest): string {
  const content = messages.map(({ id: _id, ...message }) => message);
  return `generate:${fingerprint(JSON.stringify([request, content]))}`;
}

function readMessages(where: string, { messages = [], prompt }: GenerateRequest<unknown>): readonly Message[] {
  const asked: readonly Message[] =
    prompt === undefined ? messages : [...messages, { role: "user", id: "", content: toUserBlocks(prompt, where) }];
  return asked.map((message, index) => (message.id === "" ? { ...message, id: `message:${index + 1}` } : message));
}

function checkQuestion(where: string, given: unknown): void {
  checkOptions(where, given, requestNames, { replacements });
  const { model, system, prompt, messages, settings, key } = given as Readonly<Record<string, unknown>>;
  const models: readonly unknown[] = Array.isArray(model) ? model : [model];
  const invalid = models.find((each) => !isAnyModel(each));
  if (!models.every(isAnyModel))
    throw invalidOption({ where, option: "model", expected: "a model, or a list of models", got: invalid });
  if (system !== undefined && typeof system !== "string")
    throw invalidOption({ where, option: "system", expected: "a text", got: system });
  if (settings !== undefined) checkOptions(`\`settings\` of ${where}`, settings, settingNames);
  if (key !== undefined && (typeof key !== "string" || key === ""))
    throw invalidOption({ where, option: "key", expected: "a non-empty text", got: key });
  checkMessages(where, { prompt, messages });
}

function checkMessages(
  where: string,
  { prompt, messages }: { readonly prompt: unknown; readonly messages: unknown },
): void {
  if (messages !== undefined && !Array.isArray(messages))
    throw invalidOption({ where, option: "messages", expected: "a list of messages", got: messages });
  for (const [index, message] of (messages ?? []).entries()) {
    const issue = findMessageIssue(message);
    if (issue === undefined && isPlainObject(message) && "role" in message) continue;
    throw invalidOption({
      where,
      option: `messages[${index}]`,
      expected: "a message",
      found: issue === undefined ? "a removal" : `a value that is none: ${issue.path} ${issue.message}`,
      fix: "Use userMessage(text), assistantMessage(text), or the messages of a state",
    });
  }
  const isEmpty = prompt === undefined || (typeof prompt === "string" && prompt.trim() === "");
  if (isEmpty && (messages === undefined || messages.length === 0))
    throw invalidOption({
      where,
      expected: "a prompt or messages",
      found: prompt === undefined ? "neither" : "an empty prompt",
      fix: "Pass prompt: a text, { text, files } or blocks; or messages",
    });
}
