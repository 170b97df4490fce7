"""The directory: public queues, queue managers, sites, links, users, behind one provider interface."""
