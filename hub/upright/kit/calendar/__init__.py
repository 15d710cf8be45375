"""Calendars: iCalendar text as values; recurrence, invitations, free and busy (RFC 5545, 5546)."""
