import type { AIMessage, Message } from "@langchain/langgraph-sdk";
import { useStream } from "@langchain/langgraph-sdk/react";
import { type ReactNode, useEffect, useRef, useState } from "react";
import { Composer } from "../../chat/src/composer.tsx";
import { MessageList } from "../../chat/src/message-list.tsx";
import { type Decision, listRequests, matchRequests } from "./approvals.ts";
import { describeError, getStatus, isLostConnection } from "./errors.ts";
import { getText, MessageView } from "./message-view.tsx";
import { ToolCard } from "./tool-card.tsx";

/** State of a thread, as the page uses it. */
export type State = { messages: Message[] };

export interface ChatProps {
  readonly thread: string | null;
  readonly token: string;
  /** Sentence about a change of another window. */
  readonly notice: string | undefined;
  readonly onNew: () => void;
  readonly onThread: (thread: string) => void;
  readonly onSignOut: (refused: boolean) => void;
  /** Called when the server refuses an answer because the thread has changed. */
  readonly onConflict: () => void;
  /** Called when the server answers again after a lost connection. */
  readonly onReconnect: () => void;
  /** Called when a run has come to rest. */
  readonly onSettled: () => void;
}

function useAssistant({ thread, token, onThread, onSignOut, onConflict }: ChatProps) {
  return useStream<State>({
    apiUrl: `${window.location.origin}/langgraph`,
    apiKey: token,
    assistantId: "assistant",
    threadId: thread,
    onThreadId: onThread,
    fetchStateHistory: { limit: 200 },
    reconnectOnMount: true,
    onError: (error) => {
      if (getStatus(error) === 401) onSignOut(true);
      if (getStatus(error) === 409) onConflict();
    },
  });
}

type Assistant = ReturnType<typeof useAssistant>;

/** Chat with a thread of the server. */
export function Chat(props: ChatProps): ReactNode {
  const { thread, notice, onNew, onSettled } = props;
  const stream = useAssistant(props);
  const { messages, isLoading, error } = stream;
  useJoinedRun(stream, thread);
  const isLost = !isLoading && error !== undefined && error !== null && isLostConnection(error);
  useReconnect(stream, { thread, isLost, onReconnect: props.onReconnect });
  const [isStopping, setIsStopping] = useState(false);
  useEffect(() => {
    if (isLoading) return;
    setIsStopping(false);
    onSettled();
  }, [isLoading, onSettled]);

  const send = (content: string): void => {
    const message: Message = { type: "human", id: crypto.randomUUID(), content };
    void stream.submit(
      { messages: [message] },
      { optimisticValues: (state) => ({ ...state, messages: [...(state.messages ?? []), message] }) },
    );
  };
  const stop = (): void => {
    setIsStopping(true);
    void stream.stop();
  };
  const isWaiting = !isLoading && listRequests(stream.interrupt).length > 0;
  const failure = error === undefined || error === null || getStatus(error) === 409 ? undefined : error;
  return (
    <main className="chat">
      <MessageList isAtWork={isLoading}>
        {messages.length === 0 && !isLoading && !stream.isThreadLoading && failure === undefined && (
          <div className="empty">
            <p className="empty-title">What can I do for you?</p>
            <p>Ask for a payment to see an approval, or for a long story to see a stream.</p>
          </div>
        )}
        <Messages key={stream.interrupt?.id} stream={stream} />
        {isLoading && messages.at(-1)?.type !== "ai" && <p className="thinking">Thinking…</p>}
      </MessageList>
      {notice !== undefined && failure === undefined && (
        <div className="banner" role="status">
          {notice}
        </div>
      )}
      {failure !== undefined && !isLoading && (
        <div className="banner" role="alert">
          <span>
            {!isLost && describeError(failure)}
            {isLost && `The connection is lost.${thread === null ? "" : " Connecting again…"}`}
          </span>
          {getStatus(failure) === 404 && (
            <button type="button" onClick={onNew}>
              Start a new chat
            </button>
          )}
          {getStatus(failure) === undefined && !isLost && (
            <button type="button" onClick={() => void stream.submit(null)}>
              Try again
            </button>
          )}
        </div>
      )}
      <Composer
        isAtWork={isLoading}
        isLost={getStatus(failure) === 404}
        isStopping={isStopping}
        hint={isWaiting ? "Answer the question above, or write a message to end it." : undefined}
        onSend={send}
        onStop={stop}
      />
    </main>
  );
}

/** Joins the run that another window has started. The hook joins those of its own window. */
function useJoinedRun({ client, joinStream }: Assistant, thread: string | null): void {
  const first = useRef({ thread, join: joinStream });
  useEffect(() => {
    const { thread: opened, join } = first.current;
    if (opened === null || sessionStorage.getItem(`lg:stream:${opened}`) !== null) return;
    let isCurrent = true;
    client.runs.list(opened, { status: "running", limit: 1 }).then(
      ([run]) => {
        if (isCurrent && run !== undefined) void join(run.run_id);
      },
      (error: unknown) => {
        // The hook shows the failure of its own requests.
        console.warn("the run of this chat could not be joined", error);
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [client]);
}

/** Longest time between two attempts to reach the server, in milliseconds. */
const maxRetryMs = 15_000;

/**
 * The hook gives up after a few attempts. Asks for the thread until the server answers, at growing intervals: the chat is
 * opened anew then, with the history of the thread and its run.
 */
function useReconnect(
  { client }: Assistant,
  { thread, isLost, onReconnect }: Pick<ChatProps, "thread" | "onReconnect"> & { readonly isLost: boolean },
): void {
  const reconnect = useRef(onReconnect);
  reconnect.current = onReconnect;
  useEffect(() => {
    if (!isLost || thread === null) return;
    let timer: number | undefined;
    let isCurrent = true;
    const ask = (delayMs: number): void => {
      timer = window.setTimeout(() => {
        client.threads.get(thread).then(
          () => isCurrent && reconnect.current(),
          (error: unknown) => {
            if (!isCurrent) return;
            if (getStatus(error) !== undefined) reconnect.current();
            else ask(Math.min(2 * delayMs, maxRetryMs));
          },
        );
      }, delayMs);
    };
    ask(1_000);
    return () => {
      isCurrent = false;
      window.clearTimeout(timer);
    };
  }, [client, thread, isLost]);
}

/** Tool calls of a message with their results. */
function listCalls({ tool_calls = [] }: AIMessage, messages: readonly Message[]) {
  return tool_calls.map((call) => ({
    call,
    result: messages.find((known) => known.type === "tool" && known.tool_call_id === call.id),
  }));
}

function Messages({ stream }: { readonly stream: Assistant }): ReactNode {
  const { messages, isLoading, interrupt } = stream;
  const [decisions, setDecisions] = useState<ReadonlyMap<number, Decision>>(new Map());
  const requests = isLoading ? [] : listRequests(interrupt);
  const decide = (index: number, decision: Decision): void => {
    const next = new Map(decisions).set(index, decision);
    setDecisions(next);
    if (next.size < requests.length) return;
    const answers = requests.map((_, at) => next.get(at));
    void stream.submit(undefined, { command: { resume: { decisions: answers } } });
  };
  const last = messages.at(-1);
  return messages.map((message, position) => {
    if (message.type !== "human" && message.type !== "ai") return null;
    const metadata = stream.getMessagesMetadata(message, position);
    const checkpoint = metadata?.firstSeenState?.parent_checkpoint;
    const calls = message.type === "ai" ? listCalls(message, messages) : [];
    const waiting = message === last ? calls.filter(({ result }) => result === undefined) : [];
    const places = matchRequests(
      waiting.map(({ call }) => call),
      requests,
    );
    const isAnswer = message.type === "ai" && message === last && requests.length === 0;
    return (
      <MessageView
        key={message.id ?? position}
        message={message}
        isOpen={isLoading && message === last && message.type === "ai"}
        branch={metadata?.branch}
        branches={isLoading ? [] : (metadata?.branchOptions ?? [])}
        onBranch={stream.setBranch}
        onRegenerate={
          isAnswer && !isLoading && checkpoint ? () => void stream.submit(undefined, { checkpoint }) : undefined
        }
      >
        {calls.map((entry) => {
          const { call, result } = entry;
          const place = waiting.includes(entry) ? places[waiting.indexOf(entry)] : undefined;
          return (
            <ToolCard
              key={call.id ?? call.name}
              name={call.name}
              args={call.args}
              output={result && { text: getText(result), isError: "status" in result && result.status === "error" }}
              isRunning={isLoading && message === last}
              request={place === undefined ? undefined : requests[place]}
              decision={place === undefined ? undefined : decisions.get(place)}
              onDecide={(decision) => place !== undefined && decide(place, decision)}
            />
          );
        })}
      </MessageView>
    );
  });
}
