import { isToolUIPart, type UIMessage } from "ai";
import { type ReactNode, useState } from "react";
import { ToolCard } from "./tool-card.tsx";

export interface MessageProps {
  readonly message: UIMessage;
  readonly isLast: boolean;
  /** True while the message grows. */
  readonly isOpen: boolean;
  /** True when the conversation may be changed. */
  readonly canChange: boolean;
  readonly onApprove: (approval: { id: string; approved: boolean; reason?: string }) => void;
  readonly onEdit: (text: string) => void;
  readonly onRegenerate: (() => void) | undefined;
}

/** Message of the user or of the assistant. */
export function MessageView(props: MessageProps): ReactNode {
  const { message, isLast, isOpen, canChange, onApprove, onRegenerate } = props;
  if (message.role === "user") return <UserMessage {...props} />;
  const isEmpty = message.parts.every(({ type }) => type === "step-start");
  return (
    <article className="message assistant" aria-label="Assistant">
      {message.parts.map((part, index) => {
        // Parts have no ids of their own, and keep their places.
        const key = `${index}`;
        if (part.type === "text")
          return (
            <p key={key} className="text">
              {part.text}
            </p>
          );
        if (part.type === "reasoning")
          return (
            <details key={key} className="reasoning">
              <summary>Thoughts</summary>
              <p className="text">{part.text}</p>
            </details>
          );
        if (part.type === "file")
          return (
            <a key={key} href={part.url}>
              {part.filename ?? part.mediaType}
            </a>
          );
        return isToolUIPart(part) ? (
          <ToolCard key={key} part={part} onApprove={isLast ? onApprove : undefined} />
        ) : null;
      })}
      {isOpen && <span className="cursor" aria-hidden="true" />}
      {isEmpty && !isOpen && <p className="note">No answer.</p>}
      {canChange && isLast && onRegenerate !== undefined && (
        <button type="button" className="quiet" onClick={onRegenerate}>
          Regenerate
        </button>
      )}
    </article>
  );
}

function UserMessage({ message, canChange, onEdit }: MessageProps): ReactNode {
  const text = message.parts.map((part) => (part.type === "text" ? part.text : "")).join("");
  const [draft, setDraft] = useState<string>();
  if (draft !== undefined)
    return (
      <form
        className="message user editing"
        onSubmit={(event) => {
          event.preventDefault();
          setDraft(undefined);
          if (draft.trim() !== "") onEdit(draft.trim());
        }}
      >
        <textarea
          aria-label="Edited message"
          rows={2}
          // biome-ignore lint/a11y/noAutofocus: the reader has just asked to edit this text
          autoFocus
          onFocus={({ currentTarget }) => currentTarget.setSelectionRange(draft.length, draft.length)}
          value={draft}
          onChange={(event) => setDraft(event.target.value)}
        />
        <div className="row">
          <button type="submit" className="primary">
            Send again
          </button>
          <button type="button" onClick={() => setDraft(undefined)}>
            Cancel
          </button>
        </div>
      </form>
    );
  return (
    <article className="message user" aria-label="You">
      <p className="text">{text}</p>
      {canChange && (
        <button type="button" className="quiet" onClick={() => setDraft(text)}>
          Edit
        </button>
      )}
    </article>
  );
}
