import type { UIMessage } from "ai";
import { type ReactNode, useCallback, useEffect, useState } from "react";
import { Chat } from "./chat.tsx";
import { type ChatEntry, listChats, loadMessages, ServerError } from "./server-api.ts";
import { SignIn } from "./sign-in.tsx";
import { ThemeSwitch } from "./theme-switch.tsx";

const tokenKey = "chat-page-token";

/** Id of the chat in the address; a new one when the address has none. */
function readChatId(): string {
  const known = new URLSearchParams(window.location.search).get("chat");
  if (known !== null && /^[A-Za-z0-9_-]{1,60}$/.test(known)) return known;
  return openChat(createChatId());
}

function createChatId(): string {
  return `chat-${crypto.randomUUID().slice(0, 8)}`;
}

function openChat(id: string): string {
  window.history.replaceState(null, "", `?chat=${id}`);
  return id;
}

/** Whole page: sign in, then a chat beside the list of chats. */
export function App(): ReactNode {
  const [token, setToken] = useState(() => sessionStorage.getItem(tokenKey) ?? "");
  const [isRefused, setIsRefused] = useState(false);
  const signIn = (next: string): void => {
    sessionStorage.setItem(tokenKey, next);
    setIsRefused(false);
    setToken(next);
  };
  const signOut = useCallback((refused: boolean): void => {
    sessionStorage.removeItem(tokenKey);
    setIsRefused(refused);
    setToken("");
  }, []);
  if (token === "") return <SignIn isRefused={isRefused} onSignIn={signIn} />;
  return <Desk key={token} token={token} onSignOut={signOut} />;
}

interface DeskProps {
  readonly token: string;
  readonly onSignOut: (refused: boolean) => void;
}

function Desk({ token, onSignOut }: DeskProps): ReactNode {
  const [chat, setChat] = useState(readChatId);
  const [chats, setChats] = useState<readonly ChatEntry[]>([]);
  const [attempt, setAttempt] = useState(0);

  const refreshChats = useCallback((): void => {
    listChats(token).then(setChats, (error: unknown) => {
      // The list is no more than help: the chat shows the failure of the server.
      console.warn("the list of chats is not up to date", error);
    });
  }, [token]);
  useEffect(refreshChats, [refreshChats]);

  const goTo = (id: string): void => {
    setChat(openChat(id));
    refreshChats();
  };
  return (
    <div className="desk">
      <header className="bar">
        <h1>Assistant</h1>
        <div className="bar-actions">
          <button type="button" onClick={() => goTo(createChatId())}>
            New chat
          </button>
          <ThemeSwitch />
          <button type="button" onClick={() => onSignOut(false)}>
            Sign out
          </button>
        </div>
      </header>
      <nav className="chats" aria-label="Chats">
        {chats.map((entry) => (
          <button
            key={entry.id}
            type="button"
            className="chat-entry"
            aria-current={entry.id === chat ? "page" : undefined}
            onClick={() => goTo(entry.id)}
          >
            <span className="chat-title">{entry.title ?? entry.id}</span>
            {entry.status === "waiting" && <span className="badge">waits</span>}
          </button>
        ))}
      </nav>
      <StoredChat
        key={`${chat} ${attempt}`}
        {...{ chat, token, onSignOut }}
        onSettled={refreshChats}
        onRetry={() => setAttempt(attempt + 1)}
      />
    </div>
  );
}

type Loaded =
  | { readonly kind: "loading" }
  | { readonly kind: "loaded"; readonly messages: UIMessage[] }
  | { readonly kind: "failed"; readonly message: string };

interface StoredChatProps extends DeskProps {
  readonly chat: string;
  readonly onSettled: () => void;
  readonly onRetry: () => void;
}

/** Chat after its messages were loaded. */
function StoredChat({ chat, token, onSignOut, onSettled, onRetry }: StoredChatProps): ReactNode {
  const [loaded, setLoaded] = useState<Loaded>({ kind: "loading" });
  useEffect(() => {
    let isCurrent = true;
    loadMessages(chat, token).then(
      (messages) => isCurrent && setLoaded({ kind: "loaded", messages }),
      (error: unknown) => {
        if (!isCurrent) return;
        if (error instanceof ServerError && error.status === 401) return onSignOut(true);
        const message = error instanceof ServerError ? error.message : "The server cannot be reached.";
        setLoaded({ kind: "failed", message });
      },
    );
    return () => {
      isCurrent = false;
    };
  }, [chat, token, onSignOut]);
  if (loaded.kind === "loaded")
    return <Chat id={chat} initial={loaded.messages} {...{ token, onSignOut, onSettled }} />;
  if (loaded.kind === "loading") return <p className="placeholder">Loading…</p>;
  return (
    <div className="placeholder" role="alert">
      <p>{loaded.message}</p>
      <button type="button" onClick={onRetry}>
        Try again
      </button>
    </div>
  );
}
