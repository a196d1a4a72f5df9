import { useChat } from "@ai-sdk/react";
import { lastAssistantMessageIsCompleteWithApprovalResponses, type UIMessage } from "ai";
import { type ReactNode, useCallback, useEffect, useMemo, useRef, useState } from "react";
import { Composer } from "./composer.tsx";
import { MessageList } from "./message-list.tsx";
import { MessageView } from "./message-view.tsx";
import { createHeaders, graph, loadMessages, readProblem, ServerError } from "./server-api.ts";
import { StoppableTransport } from "./stoppable-transport.ts";

export interface ChatProps {
  readonly id: string;
  readonly token: string;
  readonly initial: UIMessage[];
  readonly onSignOut: (refused: boolean) => void;
  /** Called when a run has come to rest. */
  readonly onSettled: () => void;
}

/** Chat with a thread of the server. */
export function Chat({ id, token, initial, onSignOut, onSettled }: ChatProps): ReactNode {
  const transport = useMemo(
    () =>
      new StoppableTransport<UIMessage>({
        api: `/ui/${graph}`,
        headers: createHeaders(token),
        prepareSendMessagesRequest: ({ id: chat, messages, trigger, messageId }) => ({
          body: { id: chat, messages: messages.slice(-1), trigger, messageId },
        }),
      }),
    [token],
  );
  const chat = useChat({
    id,
    transport,
    messages: initial,
    resume: true,
    sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithApprovalResponses,
    onFinish: onSettled,
  });
  const { messages, status, error, setMessages, clearError } = chat;
  const isAtWork = status === "submitted" || status === "streaming";
  const [isStopping, setIsStopping] = useState(false);
  useEffect(() => {
    if (!isAtWork) setIsStopping(false);
  }, [isAtWork]);

  const reload = useCallback(async (): Promise<void> => {
    setMessages(await loadMessages(id, token));
    clearError();
  }, [id, token, setMessages, clearError]);
  const failure = useFailure({ error, reload, resume: chat.resumeStream, onSignOut });
  const canChange = !isAtWork && failure?.isLost !== true;

  const stop = (): void => {
    setIsStopping(true);
    transport.stop(id).catch((reason: unknown) => {
      console.warn("the run could not be stopped", reason);
      setIsStopping(false);
    });
  };
  const last = messages.at(-1);
  const isWaiting = last?.parts.some((part) => "state" in part && part.state === "approval-requested") === true;
  return (
    <main className="chat">
      <MessageList isAtWork={isAtWork}>
        {messages.length === 0 && !isAtWork && (
          <div className="empty">
            <p className="empty-title">What can I do for you?</p>
            <p>Ask for a payment to see an approval, or for a long story to see a stream.</p>
          </div>
        )}
        {messages.map((message) => (
          <MessageView
            key={message.id}
            message={message}
            isOpen={isAtWork && message === last}
            isLast={message === last}
            canChange={canChange}
            onApprove={(approval) => void chat.addToolApprovalResponse(approval)}
            onEdit={(text) => void chat.sendMessage({ text, messageId: message.id })}
            onRegenerate={failure === undefined ? () => void chat.regenerate() : undefined}
          />
        ))}
        {status === "submitted" && last?.role === "user" && <p className="thinking">Thinking…</p>}
      </MessageList>
      {failure !== undefined && (
        <div className="banner" role="alert">
          <span>{failure.text}</span>
          {failure.canRetry && (
            <button type="button" onClick={() => void chat.regenerate()}>
              Try again
            </button>
          )}
        </div>
      )}
      <Composer
        isAtWork={isAtWork}
        isLost={failure?.isLost === true}
        isStopping={isStopping}
        hint={isWaiting ? "Answer the question above, or write a message to end it." : undefined}
        onSend={(text) => void chat.sendMessage({ text })}
        onStop={stop}
      />
    </main>
  );
}

interface FailureOptions {
  readonly error: Error | undefined;
  readonly reload: () => Promise<void>;
  readonly resume: () => Promise<void>;
  readonly onSignOut: (refused: boolean) => void;
}

interface Failure {
  readonly text: string;
  /** True if another answer may help. */
  readonly canRetry: boolean;
  /** True while the server cannot be reached. */
  readonly isLost: boolean;
}

/** Shows a failure, and repairs what it can: a lost connection, a chat that another tab has changed, an ended right. */
function useFailure({ error, reload, resume, onSignOut }: FailureOptions): Failure | undefined {
  const attempts = useRef(0);
  const [failure, setFailure] = useState<Failure>();
  useEffect(() => {
    if (error === undefined) {
      setFailure(undefined);
      return;
    }
    const problem = readProblem(error.message);
    if (problem?.status === 401) return onSignOut(true);
    if (problem?.status === 409) {
      // Another tab has answered, edited or regenerated: the server knows how the chat goes on.
      setFailure({ text: "Another window has changed this chat.", canRetry: false, isLost: false });
      reload().then(resume, (reason: unknown) =>
        setFailure({ text: describe(reason), canRetry: false, isLost: false }),
      );
      return;
    }
    if (problem !== undefined)
      return setFailure({ text: problem.message, canRetry: problem.status >= 500, isLost: false });
    if (!isLostConnection(error))
      return setFailure({ text: describeRun(error.message), canRetry: true, isLost: false });
    setFailure({ text: "The connection is lost. Connecting again…", canRetry: false, isLost: true });
    const delayMs = Math.min(8_000, 500 * 2 ** attempts.current);
    attempts.current += 1;
    const timer = window.setTimeout(() => {
      reload()
        .then(resume)
        .then(
          () => {
            attempts.current = 0;
          },
          () => void resume(),
        );
    }, delayMs);
    return () => window.clearTimeout(timer);
  }, [error, reload, resume, onSignOut]);
  return failure;
}

function isLostConnection(error: Error): boolean {
  return error instanceof TypeError || error.name === "AbortError";
}

/** Sentence for the error of a run, which is its code and a title. */
function describeRun(text: string): string {
  const code = /^[a-z_]+(?=: )/.exec(text)?.[0];
  return code === undefined ? text : `The assistant could not answer (${code}).`;
}

function describe(reason: unknown): string {
  return reason instanceof ServerError ? reason.message : "The server cannot be reached.";
}
