/** Pure decision about a post of `useChat`: what it asks of the thread. */
import type { Message, OpenInterrupt, UserMessage } from "@statewright/core";
import { RequestProblem } from "../http/problem.ts";
import { createProblem } from "../http/problem-table.ts";
import { createMessageIds, type MessageIds } from "./message-ids.ts";
import { readAnswers } from "./read-answers.ts";
import { readDataUrl, toUserBlock } from "./ui-blocks.ts";
import { type PostedMessage, readContentParts, type UiRequest } from "./ui-request.ts";

/** What the server knows of the thread. */
export interface KnownThread {
  /** Messages of the head branch. */
  readonly messages: readonly Message[];
  /** Names of all branches. */
  readonly branches: readonly string[];
  /** Open interrupts of the head branch, and the run that waits for them. */
  readonly interrupts: readonly OpenInterrupt[];
  readonly run: string | undefined;
  /** Ids, as clients know them, of messages that other branches have and the head branch has not. */
  readonly otherIds: ReadonlySet<string>;
}

/** What a post asks for. */
export type UiPlan =
  /** New messages; `key` makes the same post one run. */
  | { readonly kind: "send"; readonly messages: readonly UserMessage[]; readonly key: string }
  /** Answers, and new messages that follow them. */
  | {
      readonly kind: "answer";
      readonly answers: Readonly<Record<string, unknown>>;
      readonly next: Extract<UiPlan, { readonly kind: "send" }> | undefined;
    }
  /** Known message of the user, by its id in the thread: the run that it has started. */
  | { readonly kind: "repeat"; readonly message: string }
  /** Replacement of a message of the user: `original` is its id in the thread, the replacement has that of the client. */
  | { readonly kind: "edit"; readonly original: string; readonly message: UserMessage }
  /** Another answer in place of that of a run; undefined for the last run. */
  | { readonly kind: "regenerate"; readonly run: string | undefined };

/** Limits of posted files. */
export interface PostLimits {
  /** Bytes of a file in a `data:` URL. */
  readonly maxFileBytes: number;
}

/** Decides what a post asks for. Throws a problem: 409 `nothing_to_do`, 409 for a message of another branch, 413, 422. */
export function planRequest(request: UiRequest, thread: KnownThread, limits: PostLimits): UiPlan {
  const ids = createMessageIds(request.id, thread.branches);
  const { messages, messageId, trigger } = request;
  if (trigger === "regenerate-message") return planRegenerate(request, thread, ids);
  const known = new Map(thread.messages.map((message) => [ids.toClientId(message.id), message]));
  const find = (id: string): Message | undefined => known.get(ids.toThreadId(id));
  const edited = messages.find(({ id, role }) => role === "user" && id === messageId);
  const original = edited === undefined ? undefined : find(edited.id);
  if (edited !== undefined && original?.role === "user")
    return { kind: "edit", original: original.id, message: toUserMessage(edited, ids, limits) };
  const newestKnown = messages.findLastIndex(({ id, role }) => role === "user" && find(id) !== undefined);
  const fresh = messages.slice(newestKnown + 1).filter(({ role }) => role === "user");
  if (fresh.some(({ id }) => thread.otherIds.has(ids.toThreadId(id)))) throw createOtherBranchProblem();
  const send = fresh.length === 0 ? undefined : planSend(fresh, ids, limits);
  const { answers, hasOther } =
    thread.run === undefined || thread.interrupts.length === 0
      ? { answers: {}, hasOther: false }
      : readAnswers(messages, thread.interrupts, thread.run);
  if (Object.keys(answers).length > 0) return { kind: "answer", answers, next: send };
  if (send !== undefined) return send;
  const last = messages.at(-1);
  const repeated = last?.role === "user" ? find(last.id) : undefined;
  if (repeated !== undefined) return { kind: "repeat", message: repeated.id };
  throw new RequestProblem(createProblem(hasOther ? "already_answered" : "nothing_to_do"));
}

/** Creates the problem of a message that the head branch does not have, because a page has edited or regenerated. */
export function createOtherBranchProblem(): RequestProblem {
  const detail = "a posted message belongs to another branch of the thread. Load the messages again.";
  return new RequestProblem({ ...createProblem("checkpoint_changed", { detail }), status: 409 });
}

/** True for a post whose messages may belong to other branches: more than one is unknown, or the edited one. */
export function mayBelongToOtherBranch(
  { id, messages, messageId }: UiRequest,
  thread: Omit<KnownThread, "otherIds">,
): boolean {
  if (thread.branches.length < 2) return false;
  const ids = createMessageIds(id, thread.branches);
  const known = new Set(thread.messages.map((message) => ids.toClientId(message.id)));
  const unknown = messages.filter((message) => message.role === "user" && !known.has(ids.toThreadId(message.id)));
  return unknown.length > 1 || unknown.some((message) => message.id === messageId);
}

function planSend(
  posted: readonly PostedMessage[],
  ids: MessageIds,
  limits: PostLimits,
): Extract<UiPlan, { readonly kind: "send" }> {
  const messages = posted.map((message) => toUserMessage(message, ids, limits));
  return { kind: "send", messages, key: messages.at(-1)?.id ?? "" };
}

function planRegenerate({ messageId, messages }: UiRequest, { messages: known }: KnownThread, ids: MessageIds): UiPlan {
  if (known.length === 0) throw new RequestProblem(createProblem("nothing_to_do"));
  const isUserMessage = messages.some(({ id, role }) => role === "user" && id === messageId);
  if (!isUserMessage) return { kind: "regenerate", run: messageId };
  // The answer to a message of the user: only the last one has no later messages to lose.
  const lastUser = known.findLast(({ role }) => role === "user");
  if (lastUser !== undefined && messageId !== undefined && ids.toClientId(lastUser.id) === ids.toThreadId(messageId))
    return { kind: "regenerate", run: undefined };
  throw new RequestProblem(
    createProblem("unknown_message", {
      detail:
        "messageId: expected the message of an assistant, or the last message of the user. Edit an earlier message.",
    }),
  );
}

/** Converts a posted message. Throws a problem for one without text and files, and for a file that does not fit. */
function toUserMessage(posted: PostedMessage, ids: MessageIds, { maxFileBytes }: PostLimits): UserMessage {
  const parts = readContentParts(posted);
  const content = (parts ?? []).map((part) => {
    const data = part.type === "file" ? readDataUrl(part.url) : undefined;
    if (data !== undefined && (data.length * 3) / 4 > maxFileBytes)
      throw new RequestProblem(
        createProblem("body_too_large", {
          detail: `a file of the message: expected at most ${maxFileBytes} bytes. Upload the file, and post its URL.`,
        }),
      );
    return toUserBlock(part);
  });
  const blocks = content.filter((block) => block !== undefined);
  if (parts === undefined || blocks.length === 0 || blocks.length < content.length)
    throw new RequestProblem(
      createProblem("invalid_request", {
        detail:
          "a message of the user: expected text and files, with data: URLs in base64 or http(s) URLs. Remove other parts.",
      }),
    );
  return { role: "user", id: ids.toThreadId(posted.id), content: blocks };
}
