import { type ReactNode, useEffect, useRef } from "react";

/** List that stays at its end while it grows or changes its size, unless the reader has scrolled up. */
export function MessageList({
  isAtWork,
  children,
}: {
  readonly isAtWork: boolean;
  readonly children: ReactNode;
}): ReactNode {
  const list = useRef<HTMLDivElement>(null);
  const column = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  useEffect(() => {
    // A new message of the reader is always shown.
    if (isAtWork) isAtEnd.current = true;
  }, [isAtWork]);
  useEffect(() => {
    const { current } = list;
    if (current === null || column.current === null) return;
    const observer = new ResizeObserver(() => {
      if (isAtEnd.current) current.scrollTop = current.scrollHeight;
    });
    observer.observe(current);
    observer.observe(column.current);
    return () => observer.disconnect();
  }, []);
  return (
    // The wheel and the keys of the reader move the list away from its end; its own growth does not.
    <div
      ref={list}
      className="messages"
      aria-live="polite"
      aria-busy={isAtWork}
      onWheel={({ deltaY }) => {
        if (deltaY < 0) isAtEnd.current = false;
      }}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) => {
        if (scrollHeight - scrollTop - clientHeight < 40) isAtEnd.current = true;
      }}
    >
      <div ref={column} className="column">
        {children}
      </div>
    </div>
  );
}
