import type { Message } from "@langchain/langgraph-sdk";
import type { ReactNode } from "react";

/** Text of a message. */
export function getText({ content }: Pick<Message, "content">): string {
  if (typeof content === "string") return content;
  return content.map((block) => (block.type === "text" ? block.text : "")).join("");
}

export interface MessageProps {
  readonly message: Message;
  /** True while the message grows. */
  readonly isOpen: boolean;
  readonly branch: string | undefined;
  readonly branches: readonly string[];
  readonly onBranch: (branch: string) => void;
  readonly onRegenerate: (() => void) | undefined;
  /** Cards of the tool calls. */
  readonly children: ReactNode;
}

/** Message of the user or of the assistant, with its branches. */
export function MessageView(props: MessageProps): ReactNode {
  const { message, isOpen, onRegenerate, children } = props;
  const isUser = message.type === "human";
  const text = getText(message);
  return (
    <article className={`message ${isUser ? "user" : "assistant"}`} aria-label={isUser ? "You" : "Assistant"}>
      {text !== "" && <p className="text">{text}</p>}
      {children}
      {isOpen && <span className="cursor" aria-hidden="true" />}
      <div className="message-actions">
        <BranchSwitch {...props} />
        {onRegenerate !== undefined && (
          <button type="button" className="quiet" onClick={onRegenerate}>
            Regenerate
          </button>
        )}
      </div>
    </article>
  );
}

function BranchSwitch({ branch, branches, onBranch }: MessageProps): ReactNode {
  const index = branch === undefined ? -1 : branches.indexOf(branch);
  if (index === -1 || branches.length < 2) return null;
  const [previous, next] = [branches[index - 1], branches[index + 1]];
  return (
    <nav className="branches" aria-label="Branches">
      <button
        type="button"
        className="quiet"
        aria-label="Previous branch"
        disabled={previous === undefined}
        onClick={() => previous !== undefined && onBranch(previous)}
      >
        ‹
      </button>
      <span>
        {index + 1} / {branches.length}
      </span>
      <button
        type="button"
        className="quiet"
        aria-label="Next branch"
        disabled={next === undefined}
        onClick={() => next !== undefined && onBranch(next)}
      >
        ›
      </button>
    </nav>
  );
}
